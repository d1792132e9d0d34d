#include "launch/train.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/program_options.hpp>
#include <cstdio>

#include "comm/mpi_communicator.h"
#include "comm/mpi_session.h"
#include "launch/command.h"
#include "launch/train_job.h"

namespace tutti::launch {

namespace po = boost::program_options;

namespace {

po::options_description declare_options() {
  po::options_description options("Options");
  options.add_options()
      ("help,h", "show this text")
      ("job", po::value<std::string>(), "the job file")
      ("out,o", po::value<std::string>(), "output folder, instead of run.out")
      ("resume", "go on from the newest checkpoints; without any, start fresh")
      ("set", po::value<std::vector<std::string>>()->composing(),
       "change a key: --set models.0.epochs=5, --set models.NAME.optimizer.adam.lr=0.01 (may be repeated)")
      ("trace", po::value<std::string>(), "write a Chrome trace of lanes and exchanges to this file");
  return options;
}

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

TrainOptions options_from(const po::variables_map& values) {
  TrainOptions options;
  options.job_file = values["job"].as<std::string>();
  options.job.resume = values.count("resume") > 0;
  if (values.count("out")) options.job.out = values["out"].as<std::string>();
  if (values.count("set")) options.job.settings = values["set"].as<std::vector<std::string>>();
  if (values.count("trace")) options.trace = values["trace"].as<std::string>();
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
  po::variables_map values;
  const po::options_description options = declare_options();
  po::positional_options_description positional;
  positional.add("job", 1);
  try {
    po::store(po::command_line_parser(arguments).options(options).positional(positional).run(), values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; `tutti train --help` lists the options", error.what()));
  }
  if (values.count("help")) {
    fmt::print(fmt::runtime(kHelp), fmt::streamed(options));
    return kDone;
  }
  if (!values.count("job")) throw UsageError("tutti train: expected a job file, found none; `tutti train --help` shows how");
  return run_on_ranks(options_from(values));
}

}  // namespace tutti::launch
