#include "launch/train.h"

#include <optional>

#include "comm/blocked_call_guard.h"
#include "comm/last_words.h"
#include "comm/mpi_communicator.h"
#include "comm/mpi_session.h"
#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/output_thread.h"
#include "launch/standard_output.h"
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
  using enum OptionKind;
  return {"train",
          "job",
          "a job file",
          kHelp,
          {{"job", kText, "the job file"},
           {"out,o", kText, "output folder, instead of run.out; new or empty, unless --resume is given"},
           {"resume", kFlag, "go on from the newest checkpoints; without any, start fresh"},
           {"set", kTexts,
            "change a key: --set models.0.epochs=5, --set models.NAME.optimizer.adam.lr=0.01 (may be repeated)"},
           {"trace", kText, "write a Chrome trace of lanes and exchanges to this file, new or an earlier trace"}}};
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

/// What is thrown as UsageError is thrown on all ranks alike: they leave together, with the same code.
int run_or_refuse(TrainJob& job, const comm::Communicator& world) {
  try {
    return job.run();
  } catch (const UsageError& error) {
    if (world.rank() == 0) comm::say_last_words(error.what());
    return kBadInput;
  }
}

int run_on_ranks(TrainOptions options) {
  const IgnoredPipeSignal ignored;
  OutputThread output;
  const StopSignals signals;  // ends before `output`: a signal then ends the wait for a reader
  comm::BlockedCallGuard guard(RankWatch::kBlockedLimit);
  guard.beat("starting MPI");
  const comm::MpiSession session;
  comm::MpiCommunicator world(session);
  train::CrashLog crash_log;
  std::optional<RankWatch> watch;
  std::optional<TrainJob> job;
  try {
    watch.emplace(world, signals, guard);
    job.emplace(session, world, *watch, crash_log, output, std::move(options));
    const int code = run_or_refuse(*job, world);
    watch->leave_together();
    return code;
  } catch (const std::exception& error) {
    // The job still stands here: to end its lanes could mean to wait for a lane that hangs.
    end_job(world, error);
  }
}

}  // namespace

int train_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  return run_on_ranks(options_from(line));
}

}  // namespace tutti::launch
