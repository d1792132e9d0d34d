// Two passes over the rows of an importer: statistics, then shards.
#include "data/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>

#include "data/data_error.h"
#include "data/field_statistics.h"
#include "data/shard.h"

namespace tutti::data {
namespace {

constexpr int64_t kReadBytes = int64_t{4} << 20;
constexpr double kMostClasses = 1e6;

int64_t rows_per_read(const RowSource& source) {
  int64_t row_bytes = 1;
  for (const Field& field : source.inputs()) row_bytes += field.row_bytes();
  for (const Field& field : source.targets()) row_bytes += field.row_bytes();
  return std::clamp<int64_t>(kReadBytes / row_bytes, 1, kShardBlockRows);
}

// Reads the next `count` rows in parts.
void read_rows(RowSource& source, int64_t count, const std::function<void(int64_t, const RowBytes&)>& take) {
  RowBytes rows;
  for (int64_t done = 0; done < count;) {
    const int64_t part = std::min(rows_per_read(source), count - done);
    source.read(part, rows);
    take(part, rows);
    done += part;
  }
}

void check_finite(const Field& field, const FieldStatistics& statistics, ImportOptions::NonFinite allowed) {
  if (statistics.non_finite_count() == 0 || allowed == ImportOptions::NonFinite::kAllow) return;
  throw DataError(fmt::format(
      "field '{}': {} of {} values ({:.3g} %) are empty, NaN or infinite, the first in row {}: "
      "expected finite values; repair the data, or pass --allow-nan",
      field.name, statistics.non_finite_count(), statistics.value_count(),
      100 * static_cast<double>(statistics.non_finite_count()) / static_cast<double>(statistics.value_count()),
      statistics.first_non_finite_row().value()));
}

struct Fields {
  std::vector<Field> inputs, targets;
};

Fields with_statistics(RowSource& source, const ImportOptions& options) {
  Fields fields{source.inputs(), source.targets()};
  std::vector<Field*> all;
  for (Field& field : fields.inputs) all.push_back(&field);
  for (Field& field : fields.targets) all.push_back(&field);
  std::vector<FieldStatistics> statistics;
  for (const Field* field : all) statistics.emplace_back(*field);
  source.rewind();
  read_rows(source, source.row_count(), [&](int64_t count, const RowBytes& rows) {
    for (size_t i = 0; i < all.size(); ++i) statistics[i].add(count, rows[i]);
  });
  for (size_t i = 0; i < all.size(); ++i) {
    Field& field = *all[i];
    check_finite(field, statistics[i], options.non_finite);
    const bool input = i < fields.inputs.size();
    if (input && is_quantity(field) && options.normalisation == ImportOptions::Normalisation::kOwn) {
      field.mean = statistics[i].mean();
      field.deviation = statistics[i].deviation();
    }
    if (!input && is_integer(field.type) && field.class_count == 0 && statistics[i].least() >= 0 &&
        statistics[i].greatest() < kMostClasses) {
      field.class_count = static_cast<int64_t>(statistics[i].greatest()) + 1;
    }
  }
  return fields;
}

// Takes over what describes the values in `like`. Class names that differ would give labels another meaning.
void make_like(Fields& fields, const std::filesystem::path& like) {
  const ShardInfo shard = read_shard_info(like);
  for (const auto& [role, list] :
       {std::pair{FieldRole::kInput, &fields.inputs}, {FieldRole::kTarget, &fields.targets}}) {
    for (Field& field : *list) {
      const auto same = std::find_if(shard.columns.begin(), shard.columns.end(), [&](const ShardColumn& column) {
        return column.role == role && column.field.name == field.name;
      });
      if (same == shard.columns.end() || describe(same->field) != describe(field)) {
        throw DataError(fmt::format("{}: expected a field '{}' of {} as in the rows to import", like.string(),
                                    field.name, describe(field)));
      }
      if (same->field.class_names != field.class_names) {
        throw DataError(fmt::format("{}: field '{}': its class names are not those of the rows to import",
                                    like.string(), field.name));
      }
      field = same->field;
    }
  }
}

std::string shard_name(const std::string& stem, int64_t index, int64_t shard_count) {
  const auto digits = static_cast<int>(std::to_string(shard_count - 1).size());
  return fmt::format("{}-{:0{}}.h5", stem, index, std::max(3, digits));
}

// The shards STEM-<digits>.h5 that exist: a pattern STEM-*.h5 would take them in.
std::vector<std::filesystem::path> existing_shards(const std::filesystem::path& out) {
  std::vector<std::filesystem::path> found;
  const std::string begin = out.filename().string() + "-", end = ".h5";
  const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : std::filesystem::path(".");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size()) continue;
    const std::string number = name.substr(begin.size(), name.size() - begin.size() - end.size());
    if (number.find_first_not_of("0123456789") == std::string::npos) found.push_back(out.parent_path() / name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

ImportSummary import_rows(RowSource& source, const ImportOptions& options) {
  if (source.row_count() < 1 || options.rows_per_shard < 1) {
    throw DataError(fmt::format("expected at least one row and one row per shard, found {} and {}", source.row_count(),
                                options.rows_per_shard));
  }
  const std::vector<std::filesystem::path> existing = existing_shards(options.out);
  if (!existing.empty() && options.writer.existing == ShardWriter::Existing::kRefuse) {
    throw DataError(fmt::format("{}: exists already; remove it, choose another name, or replace it with --force",
                                existing[0].string()));
  }
  Fields fields = with_statistics(source, options);
  if (options.normalisation == ImportOptions::Normalisation::kLike) make_like(fields, options.like);
  if (options.out.has_parent_path()) std::filesystem::create_directories(options.out.parent_path());

  source.rewind();
  ImportSummary summary{{}, fields.inputs, fields.targets};
  const int64_t shard_count = (source.row_count() + options.rows_per_shard - 1) / options.rows_per_shard;
  for (int64_t shard = 0; shard < shard_count; ++shard) {
    const std::filesystem::path path =
        options.out.parent_path() / shard_name(options.out.filename().string(), shard, shard_count);
    const int64_t count = std::min(options.rows_per_shard, source.row_count() - shard * options.rows_per_shard);
    ShardWriter writer(path, count, fields.inputs, fields.targets, options.writer);
    read_rows(source, count, [&](int64_t part, const RowBytes& rows) {
      const std::vector<std::span<const std::byte>> columns(rows.begin(), rows.end());
      writer.append(part, columns);
    });
    writer.finish();
    summary.files.push_back({path, count, static_cast<int64_t>(std::filesystem::file_size(path))});
  }
  for (const std::filesystem::path& path : existing) {
    const auto same = [&](const ImportSummary::File& file) { return file.path == path; };
    if (std::none_of(summary.files.begin(), summary.files.end(), same)) std::filesystem::remove(path);
  }
  return summary;
}

}  // namespace tutti::data
