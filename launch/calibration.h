// What `tutti calibrate` measures, and what the cost model takes from it.
#ifndef TUTTI_LAUNCH_CALIBRATION_H
#define TUTTI_LAUNCH_CALIBRATION_H

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "partition/cost_model.h"

namespace tutti::launch {

/// One lane of one rank, while every rank measures.
struct LaneSpeed {
  int rank = 0;
  std::string host;
  double product_flops_per_second = 0;      ///< matrix product, 256 x 256 x 256, float
  double convolution_flops_per_second = 0;  ///< 3 x 3, 16 to 32 channels of 14 x 14, batch 32, float
  double bytes_per_second = 0;              ///< memory traffic of a sum of two vectors larger than the caches
  double instruction_seconds = 0;           ///< of a program over one value, forward and backward

  /// The rate at which equal amounts of both kinds of work are done.
  double flops_per_second() const;
};

/// Messages between two ranks.
struct LinkSpeed {
  int from = 0;
  int to = 0;
  partition::Link link;
};

/// An exact sum over all ranks, measured and as the model has it.
struct SumTime {
  int64_t bytes = 0;
  double seconds = 0;
  double predicted_seconds = 0;
};

struct Calibration {
  std::vector<LaneSpeed> ranks;
  std::vector<LinkSpeed> links;  ///< empty for one rank
  std::vector<SumTime> sums;     ///< empty for one rank

  /// The mean lane.
  partition::Machine machine() const;
  /// A rank's speed relative to machine(); 1 for a rank that was not measured.
  double speed(size_t rank) const;
  /// The slowest link in both respects, which a sum over all has to wait for; the model's default for one rank.
  partition::Link link() const;
};

void to_json(nlohmann::json& json, const Calibration& calibration);

/// An entry of "ranks".
LaneSpeed lane_speed_from(const nlohmann::json& json);

/// An entry of "links".
nlohmann::json json_of(const LinkSpeed& measured);
LinkSpeed link_speed_from(const nlohmann::json& json);

/// Reads a file that `tutti calibrate --out` wrote. Throws UsageError naming the file and the missing key.
Calibration read_calibration(const std::filesystem::path& file);

std::string to_table(const Calibration& calibration);

}  // namespace tutti::launch

#endif
