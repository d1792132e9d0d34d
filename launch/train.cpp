#include "launch/train.h"

#include <fmt/format.h>

#include <cstdio>

#include "comm/mpi_communicator.h"
#include "comm/mpi_session.h"
#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/train_job.h"

namespace tutti::launch {

namespace {

constexpr const char* kHelp = R"(Usage: tutti train JOB.yaml [options]
       mpirun -n 4 tutti train JOB.yaml [options]

Trains all models of a job file together. Every model's results are the same bits on any
number of ranks and lanes.

{}
Signals: SIGUSR1 or SIGTERM writes checkpoints at the next step and leaves with exit code 75.
Exit codes: 0 all models finished, 2 bad input, 3 some models failed, 70 internal fault,
75 checkpointed: start again with --resume.

Example: mpirun -n 2 tutti train examples/digits.yaml --set defaults.epochs=2
)";

CommandForm form() {
  CommandForm form{"train", "job", "a job file", kHelp, {"Options"}};
  form.options.add_options()
      ("job", one_text(), "the job file")
      ("out,o", one_text(), "output folder, instead of run.out")
      ("resume", "go on from the newest checkpoints; without any, start fresh")
      ("set", many_texts(),
       "change a key: --set models.0.epochs=5, --set models.NAME.optimizer.adam.lr=0.01 (may be repeated)")
      ("trace", one_text(), "write a Chrome trace of lanes and exchanges to this file");
  return form;
}

TrainOptions options_from(const CommandLine& line) {
  TrainOptions options;
  options.job_file = line.text("job");
  options.job.resume = line.has("resume");
  if (line.has("out")) options.job.out = line.text("out");
  options.job.settings = line.texts("set");
  if (line.has("trace")) options.trace = line.text("trace");
  return options;
}

int run_on_ranks(TrainOptions options) {
  const comm::MpiSession session;
  comm::MpiCommunicator world(session);
  try {
    return TrainJob(session, world, std::move(options)).run();
  } catch (const UsageError& error) {
    // Thrown on all ranks alike: they leave together, with the same code.
    if (world.rank() == 0) fmt::print(stderr, "tutti: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: rank {}: {}\n", world.rank(), error.what());
    std::fflush(nullptr);
    world.abort(kInternal);
  }
}

}  // namespace

int train_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  return run_on_ranks(options_from(line));
}

}  // namespace tutti::launch
