#include "launch/calibrate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "comm/collectives.h"
#include "comm/last_words.h"
#include "comm/mpi_communicator.h"
#include "comm/mpi_session.h"
#include "data/file_kind.h"
#include "launch/calibration.h"
#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/lane_benchmark.h"
#include "launch/lane_thread.h"
#include "launch/link_benchmark.h"
#include "src/train/posix_file.h"

namespace tutti::launch {

namespace {

constexpr const char* kHelp = R"(Usage: tutti calibrate [options]
       mpirun -n 4 tutti calibrate [options]

Measures what a lane of each rank achieves (products, convolutions, memory traffic, the cost of an
instruction), latency and bandwidth between the ranks, and exact sums against the model's prediction.
`tutti plan --calibration FILE` predicts with the numbers. The machine should be idle otherwise.

{}
Example: mpirun -n 4 tutti calibrate --out machine.json
)";

CommandForm form() {
  using enum OptionKind;
  return {
      "calibrate", "", "", kHelp, {{"json", kFlag, "print JSON"}, {"out,o", kText, "write the JSON to this file too"}}};
}

Calibration measure(comm::Communicator& world) {
  const comm::Process own = comm::this_process();
  LaneSpeed lane = measure_lane();
  lane.rank = world.rank();
  lane.host = own.host;
  Calibration calibration;
  const nlohmann::json text = Calibration{{lane}, {}, {}};
  for (const std::string& other : comm::all_gather(world, text.dump(), {.operation = "collecting the lanes' speeds"})) {
    calibration.ranks.push_back(lane_speed_from(nlohmann::json::parse(other).at("ranks").at(0)));
  }
  calibration.links = measure_links(world, {.operation = "measuring the links"});
  // Only rank 0 knows the links; what a sum should take does not change what it takes.
  calibration.sums = measure_sums(world, {.operation = "measuring exact sums"}, calibration.link());
  return calibration;
}

/// Why the file cannot be written, found before measuring takes its time; empty where it can.
std::string fault_of(const std::filesystem::path& file) {
  const std::string expected = "--out: expected a file to write in an existing folder, found " + file.string();
  if (const std::string kind = data::other_than_regular_file(file); !kind.empty()) return expected + ", " + kind;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return expected + ", whose folder is absent; make it first";
  if (access(folder.c_str(), W_OK) != 0) return fmt::format("{}: {}", expected, std::strerror(errno));
  return {};
}

/// False, and rank 0 says why, when `--out` cannot be written. Collective; all ranks return the same.
bool accepts_out(comm::Communicator& world, const CommandLine& line) {
  const std::string own = world.rank() == 0 && line.has("out") ? fault_of(line.text("out")) : "";
  const std::string fault = comm::broadcast(world, own, {.operation = "looking at --out"});
  if (!fault.empty() && world.rank() == 0) comm::say_last_words(fault);
  return fault.empty();
}

}  // namespace

int calibrate_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  compute_as_lane();
  const comm::MpiSession session;
  comm::MpiCommunicator world(session);
  if (!accepts_out(world, line)) return kBadInput;
  const Calibration calibration = measure(world);
  if (world.rank() != 0) return kDone;
  const std::string json = nlohmann::json(calibration).dump(1) + "\n";
  if (line.has("out")) train::replace_file(line.text("out"), json);
  fmt::print("{}", line.has("json") ? json : to_table(calibration));
  return kDone;
}

}  // namespace tutti::launch
