#include "launch/command_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "launch/calibrate.h"
#include "launch/command.h"
#include "launch/eval.h"
#include "launch/job_file_command.h"
#include "launch/plan.h"
#include "launch/predict.h"
#include "launch/shard.h"
#include "launch/show.h"
#include "launch/train.h"
#include "launch/version.h"
#include "src/graph/nearest_name.h"

namespace tutti::launch {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"train", "train all models of a job file", train_command},
      {"plan", "who would train what where, with time, memory and disk", plan_command},
      {"shard", "make shards from IDX, CIFAR, CSV or NumPy files", shard_command},
      {"eval", "loss and metrics of trained models, on their test data or other data", eval_command},
      {"predict", "a trained model's outputs for every row of a data set", predict_command},
      {"show", "a table of a finished or running output folder", show_command},
      {"calibrate", "the speed of this machine's lanes and links", calibrate_command},
      {"job-file", "every key of a job file, as a page", job_file_command},
      {"version", "versions of the program and of what it is built on", version_command},
  };
  return all;
}

namespace {

void print_help() {
  fmt::print("Usage: tutti COMMAND [options]\n\nTrains many neural networks at once over MPI.\n\nCommands:\n");
  for (const Command& command : commands()) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\n`tutti COMMAND --help` tells more of one.\n");
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_help();
    return arguments.empty() ? kBadInput : kDone;
  }
  if (arguments[0] == "--version") return version_command({arguments.begin() + 1, arguments.end()});
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == arguments[0]) return command.run({arguments.begin() + 1, arguments.end()});
    names.push_back(command.name);
  }
  throw UsageError(fmt::format("expected a command, found `{}`; did you mean `{}`? `tutti --help` lists them",
                               arguments[0], graph::nearest_name(arguments[0], names)));
}

}  // namespace tutti::launch
