#include "launch/version.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <torch/version.h>

#include <boost/program_options.hpp>

#include "comm/mpi_session.h"
#include "launch/build_info.h"
#include "launch/command.h"
#include "launch/cpu_level.h"

namespace tutti::launch {

namespace po = boost::program_options;

namespace {

po::options_description declare_options() {
  po::options_description options("Options");
  options.add_options()("help,h", "show this text")("json", "print JSON");
  return options;
}

constexpr const char* kHelp = R"(Usage: tutti version [options]

Versions of the program and of what it is built on, and the instruction-set level of this CPU.

{}
Example: tutti version --json
)";

}  // namespace

std::string program_version() {
  if (kBuildInfo.commit.empty()) return std::string(kBuildInfo.version);
  return fmt::format("{} ({})", kBuildInfo.version, kBuildInfo.commit);
}

nlohmann::json version_info() {
  return {{"tutti", program_version()},      {"libtorch", TORCH_VERSION},      {"mpi", comm::mpi_library_version()},
          {"hdf5", kBuildInfo.hdf5_version}, {"build", kBuildInfo.build_type}, {"cpu_level", name_of(cpu_level())}};
}

int version_command(const std::vector<std::string>& arguments) {
  po::variables_map values;
  const po::options_description options = declare_options();
  try {
    po::store(po::command_line_parser(arguments).options(options).run(), values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; `tutti version --help` lists the options", error.what()));
  }
  if (values.contains("help")) {
    fmt::print(fmt::runtime(kHelp), fmt::streamed(options));
    return kDone;
  }
  const nlohmann::json info = version_info();
  if (values.contains("json")) {
    fmt::print("{}\n", info.dump(1));
    return kDone;
  }
  for (const auto& [name, key] : {std::pair{"Tutti", "tutti"},
                                  {"LibTorch", "libtorch"},
                                  {"MPI", "mpi"},
                                  {"HDF5", "hdf5"},
                                  {"Build", "build"},
                                  {"CPU level", "cpu_level"}}) {
    fmt::print("{:<10} {}\n", name, info[key].get<std::string>());
  }
  return kDone;
}

}  // namespace tutti::launch
