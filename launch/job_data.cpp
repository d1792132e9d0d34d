// The `data:` block: data sets, opened and compared.
#include "launch/job_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "data/sample_order.h"
#include "launch/key_reader.h"
#include "launch/substitution.h"
#include "src/train/batch_source.h"

namespace tutti::launch {
namespace {

using DataSetPointer = std::shared_ptr<const data::DataSet>;

data::ReadOptions read_options(const KeyReader& reader) {
  using Access = data::ReadOptions::Access;
  const std::map<std::string, Access> accesses{
      {"auto", Access::kAuto}, {"map", Access::kMap}, {"pread", Access::kPread}, {"stream", Access::kStream}};
  return {accesses.at(reader.text("access")), reader.boolean("verify_checksums"), reader.bytes("window")};
}

data::Augmentation read_augmentation(const KeyReader& data, Faults& faults) {
  const Node* node = data.node("augment");
  if (node == nullptr) return {};
  const KeyReader reader(augment_block(), *node, data.path_of("augment"), faults);
  return {reader.boolean("flip"), reader.integer("crop"), reader.number("noise")};
}

/// Null where the key is absent or the shards are at fault.
DataSetPointer open_part(const KeyReader& reader, std::string_view part, const std::filesystem::path& folder,
                         const data::ReadOptions& options, const DataOpener& open) {
  std::vector<std::string> patterns;
  for (const std::string& pattern : reader.texts(part)) patterns.push_back((folder / pattern).string());
  if (patterns.empty()) {
    if (reader.has(part)) reader.fault(part, "expected at least one path or pattern, found none");
    return nullptr;
  }
  try {
    return open(patterns, options);
  } catch (const data::DataError& error) {
    reader.fault(part, error.what());
    return nullptr;
  }
}

std::string fields_text(const std::vector<data::Field>& fields) {
  std::vector<std::string> texts;
  texts.reserve(fields.size());
  for (const data::Field& field : fields) {
    texts.push_back(fmt::format("{} [{}]", field.name, fmt::join(field.shape, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void compare_fields(const KeyReader& reader, std::string_view part, const DataSetPointer& train,
                    const DataSetPointer& other) {
  if (!train || !other || train == other) return;
  const std::string expected = fields_text(train->inputs()) + " -> " + fields_text(train->targets());
  const std::string found = fields_text(other->inputs()) + " -> " + fields_text(other->targets());
  if (expected != found) {
    reader.fault(part, fmt::format("expected the fields of the training shards, {}; found {}", expected, found));
  }
}

/// A part of a data set that holds no row after the split is most likely a slip in `held_out`.
void check_held_out(const KeyReader& reader, const train::ModelData& data) {
  if (data.held_out <= 0 || !data.train || data.train->row_count() == 0) return;
  using Part = data::Split::Part;
  const int64_t rows = data.train->row_count();
  const int64_t held_out = data::Split(rows, data.held_out, data.seed, Part::kHeldOut).size();
  if (held_out > 0 && held_out < rows) return;
  reader.fault("held_out",
               fmt::format("expected at least one row to train on and one held out, found {} of {} training "
                           "rows held out",
                           held_out, rows));
}

/// Warns of shards that are named twice, by one part or by two.
void warn_of_repeated_shards(const KeyReader& reader, const train::ModelData& data,
                             std::vector<std::string>& warnings) {
  std::map<std::string, std::string_view> part_of;  // a shard's path without links
  const std::pair<std::string_view, const data::DataSet*> parts[] = {
      {"train", data.train.get()}, {"validation", data.validation.get()}, {"test", data.test.get()}};
  for (const auto& [part, set] : parts) {
    if (set == nullptr || !reader.has(part)) continue;
    std::vector<std::string> patterns = reader.texts(part);
    std::ranges::sort(patterns);
    if (const auto twice = std::ranges::adjacent_find(patterns); twice != patterns.end()) {
      warnings.push_back(reader.fault_text(part, fmt::format("{} is named twice and read once", *twice)));
    }
    for (const std::filesystem::path& file : set->files()) {
      std::error_code error;
      const auto [first, is_new] = part_of.emplace(std::filesystem::weakly_canonical(file, error).string(), part);
      if (is_new) continue;
      warnings.push_back(reader.fault_text(
          part, first->second == part ? fmt::format("{} is named twice and read twice", file.string())
                                      : fmt::format("{} is also a shard of `{}`", file.string(), first->second)));
    }
  }
}

train::ModelData read_data_set(const Node& node, const std::filesystem::path& folder, const DataOpener& open,
                               Faults& faults, std::vector<std::string>& warnings) {
  const KeyReader reader(data_block(), node, "data." + node.key, faults);
  const data::ReadOptions options = read_options(reader);
  train::ModelData data;
  data.name = node.key;
  data.train = open_part(reader, "train", folder, options, open);
  data.validation = open_part(reader, "validation", folder, options, open);
  data.test = open_part(reader, "test", folder, options, open);
  data.held_out = reader.number("held_out");
  data.seed = static_cast<uint64_t>(reader.integer("seed"));
  data.augmentation = read_augmentation(reader, faults);
  data.normalise = reader.boolean("normalise");
  compare_fields(reader, "validation", data.train, data.validation);
  compare_fields(reader, "test", data.train, data.test);
  if (data.held_out > 0 && reader.has("validation")) {
    reader.fault("held_out", "expected either `validation` or `held_out`, found both");
  }
  if (data.held_out > 0) data.validation = data.train;
  if (data.train && data.train->row_count() == 0) reader.fault("train", "expected at least one row, found none");
  check_held_out(reader, data);
  warn_of_repeated_shards(reader, data, warnings);
  return data;
}

}  // namespace

JobData read_data(const Node& block, const std::filesystem::path& folder, const DataOpener& open, Faults& faults,
                  std::vector<std::string>& warnings) {
  JobData data;
  if (block.kind != Node::Kind::kMap || block.children.empty()) {
    faults.add(block.place, "data",
               fmt::format("expected a mapping from names to data sets, found {}",
                           block.kind == Node::Kind::kMap ? "an empty one" : describe(block)));
    return data;
  }
  for (const Node& child : block.children) {
    const Node node = substitute(child, {}, "data." + child.key, faults);
    data.emplace(node.key, read_data_set(node, folder, open, faults, warnings));
  }
  return data;
}

void warn_of_small_windows(const std::vector<train::ModelSpec>& models, std::vector<std::string>& warnings) {
  std::set<std::string_view> looked_at;
  for (const train::ModelSpec& model : models) {
    if (model.order != data::SampleOrder::Kind::kShuffled || !looked_at.insert(model.data.name).second) continue;
    const int64_t window_bytes = model.data.train->stream_use().window_bytes;
    const int64_t needed_bytes = train::training_window_bytes(model);
    if (needed_bytes <= window_bytes) continue;
    const int64_t mebibytes = (needed_bytes >> 20) + 1;
    warnings.push_back(fmt::format(
        "data.{}.window: {} bytes, but shuffled rows are drawn from up to {} bytes of blocks at a time, which are then "
        "read and decompressed again and again; set `window: {}MiB`, or twice that to read ahead as well",
        model.data.name, window_bytes, needed_bytes, mebibytes));
  }
}

}  // namespace tutti::launch
