#include "launch/calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "launch/command.h"
#include "launch/text_file.h"
#include "launch/text_table.h"

namespace tutti::launch {

namespace {

nlohmann::json json_of(const LaneSpeed& lane) {
  return {{"rank", lane.rank},
          {"host", lane.host},
          {"product_flops_per_second", lane.product_flops_per_second},
          {"convolution_flops_per_second", lane.convolution_flops_per_second},
          {"bytes_per_second", lane.bytes_per_second},
          {"instruction_seconds", lane.instruction_seconds}};
}

nlohmann::json json_of(const partition::Link& link) {
  return {{"latency_seconds", link.latency_seconds}, {"seconds_per_byte", link.seconds_per_byte}};
}

}  // namespace

double LaneSpeed::flops_per_second() const {
  return 2 / (1 / product_flops_per_second + 1 / convolution_flops_per_second);
}

partition::Machine Calibration::machine() const {
  partition::Machine mean{0, 0, 0};
  const auto count = static_cast<double>(ranks.size());
  for (const LaneSpeed& lane : ranks) {
    mean.flops_per_second += lane.flops_per_second() / count;
    mean.bytes_per_second += lane.bytes_per_second / count;
    mean.instruction_seconds += lane.instruction_seconds / count;
  }
  return mean;
}

double Calibration::speed(size_t rank) const {
  return rank < ranks.size() ? ranks[rank].flops_per_second() / machine().flops_per_second : 1;
}

partition::Link Calibration::link() const {
  if (links.empty()) return {};
  partition::Link slowest = links.front().link;
  for (const LinkSpeed& measured : links) {
    slowest.latency_seconds = std::max(slowest.latency_seconds, measured.link.latency_seconds);
    slowest.seconds_per_byte = std::max(slowest.seconds_per_byte, measured.link.seconds_per_byte);
  }
  return slowest;
}

void to_json(nlohmann::json& json, const Calibration& calibration) {
  const partition::Machine machine = calibration.machine();
  json = {{"format", 1},
          {"machine",
           {{"flops_per_second", machine.flops_per_second},
            {"bytes_per_second", machine.bytes_per_second},
            {"instruction_seconds", machine.instruction_seconds}}},
          {"link", json_of(calibration.link())},
          {"ranks", nlohmann::json::array()},
          {"links", nlohmann::json::array()},
          {"sums", nlohmann::json::array()}};
  for (size_t r = 0; r < calibration.ranks.size(); ++r) {
    json["ranks"].push_back(json_of(calibration.ranks[r]));
    json["ranks"].back()["speed"] = calibration.speed(r);
  }
  for (const LinkSpeed& measured : calibration.links) json["links"].push_back(json_of(measured));
  for (const SumTime& sum : calibration.sums) {
    json["sums"].push_back(
        {{"bytes", sum.bytes}, {"seconds", sum.seconds}, {"predicted_seconds", sum.predicted_seconds}});
  }
}

LaneSpeed lane_speed_from(const nlohmann::json& json) {
  return {json.at("rank"),
          json.at("host"),
          json.at("product_flops_per_second"),
          json.at("convolution_flops_per_second"),
          json.at("bytes_per_second"),
          json.at("instruction_seconds")};
}

nlohmann::json json_of(const LinkSpeed& measured) {
  nlohmann::json json = json_of(measured.link);
  json["ranks"] = {measured.from, measured.to};
  return json;
}

LinkSpeed link_speed_from(const nlohmann::json& json) {
  return {json.at("ranks").at(0), json.at("ranks").at(1), {json.at("latency_seconds"), json.at("seconds_per_byte")}};
}

Calibration read_calibration(const std::filesystem::path& file) {
  Calibration calibration;
  try {
    const auto json = nlohmann::json::parse(read_text(file).value_or(""));
    for (const auto& lane : json.at("ranks")) calibration.ranks.push_back(lane_speed_from(lane));
    for (const auto& link : json.at("links")) calibration.links.push_back(link_speed_from(link));
    for (const auto& sum : json.at("sums")) {
      calibration.sums.push_back({sum.at("bytes"), sum.at("seconds"), sum.at("predicted_seconds")});
    }
    if (calibration.ranks.empty()) throw std::runtime_error("no ranks");
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("--calibration: expected a file that `tutti calibrate --out` wrote, found {} ({})",
                                 file.string(), error.what()));
  }
  return calibration;
}

std::string to_table(const Calibration& calibration) {
  std::vector<Row> lanes = {
      {"rank", "product Gflop/s", "conv Gflop/s", "memory GB/s", "us/instruction", "speed", "host"}};
  for (size_t r = 0; r < calibration.ranks.size(); ++r) {
    const LaneSpeed& lane = calibration.ranks[r];
    lanes.push_back({fmt::format("{}", lane.rank), fmt::format("{:.1f}", lane.product_flops_per_second * 1e-9),
                     fmt::format("{:.1f}", lane.convolution_flops_per_second * 1e-9),
                     fmt::format("{:.1f}", lane.bytes_per_second * 1e-9),
                     fmt::format("{:.2f}", lane.instruction_seconds * 1e6), fmt::format("{:.2f}", calibration.speed(r)),
                     lane.host});
  }
  std::string text = "One lane of each rank, all ranks at once\n" + table_of(lanes);
  if (calibration.links.empty()) return text + "\nOne rank: no links to measure\n";
  std::vector<Row> links = {{"ranks", "latency us", "GB/s"}};
  for (const LinkSpeed& measured : calibration.links) {
    links.push_back({fmt::format("{} - {}", measured.from, measured.to),
                     fmt::format("{:.1f}", measured.link.latency_seconds * 1e6),
                     fmt::format("{:.2f}", 1e-9 / measured.link.seconds_per_byte)});
  }
  std::vector<Row> sums = {{"bytes", "measured us", "predicted us"}};
  for (const SumTime& sum : calibration.sums) {
    sums.push_back({fmt::format("{}", sum.bytes), fmt::format("{:.0f}", sum.seconds * 1e6),
                    fmt::format("{:.0f}", sum.predicted_seconds * 1e6)});
  }
  return text + "\nLinks\n" + table_of(links) + "\nExact sums over all ranks\n" + table_of(sums);
}

}  // namespace tutti::launch
