#include "launch/version.h"

#include <fmt/format.h>
#include <torch/version.h>

#include "comm/mpi_session.h"
#include "launch/build_info.h"
#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/cpu_level.h"

namespace tutti::launch {

namespace {

constexpr const char* kHelp = R"(Usage: tutti version [options]

Versions of the program and of what it is built on, and the instruction-set level of this CPU.

{}
Example: tutti version --json
)";

CommandForm form() {
  using enum OptionKind;
  return {"version", "", "", kHelp, {{"json", kFlag, "print JSON"}}};
}

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
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  const nlohmann::json info = version_info();
  if (line.has("json")) {
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
