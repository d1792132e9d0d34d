// CSV tables: one pass finds columns, types and class names, later passes give rows.
#include "data/import_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "data/byte_stream.h"
#include "data/data_error.h"

namespace tutti::data {
namespace {

constexpr size_t kMostClasses = 100000;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8; spreadsheets write it

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What to do about a line that was cut at none of its separators; empty where it has no other that is usual.
std::string separator_hint(const std::vector<std::string>& cells) {
  if (cells.size() != 1) return "";
  for (const auto& [separator, option] : {std::pair{';', "';'"}, std::pair{'\t', "$'\\t'"}, std::pair{',', "','"}}) {
    if (cells[0].find(separator) == std::string::npos) continue;
    return fmt::format("; the first line is one cell that holds {}: give `--separator {}`",
                       separator == '\t' ? "tabs" : fmt::format("'{}'", separator), option);
  }
  return "";
}

// Lines of a stream, cut into cells.
class CsvLines {
 public:
  CsvLines(const std::filesystem::path& path, char separator) : stream_(open_stream(path)), separator_(separator) {}

  const std::string& name() const { return stream_->name(); }
  int64_t line_number() const { return line_number_; }
  std::string place() const { return fmt::format("{}:{}", name(), line_number_); }

  /// The cells of the next line that is not empty; false at the end.
  bool next(std::vector<std::string>& cells) {
    std::string line;
    do {
      if (!next_line(line)) return false;
    } while (trimmed(line).empty());
    cut(line, cells);
    return true;
  }

  void rewind() {
    stream_->rewind();
    buffer_.clear();
    at_ = 0;
    line_number_ = 0;
  }

 private:
  bool next_line(std::string& line) {
    size_t end;
    while ((end = buffer_.find('\n', at_)) == std::string::npos) {
      std::vector<std::byte> part(size_t{1} << 16);
      const size_t got = stream_->read(part);
      buffer_.erase(0, at_);
      at_ = 0;
      buffer_.append(reinterpret_cast<const char*>(part.data()), got);
      if (got == 0) {
        if (buffer_.empty()) return false;
        end = buffer_.size();
        break;
      }
    }
    line = buffer_.substr(at_, end - at_);
    at_ = std::min(end + 1, buffer_.size());
    if (line_number_ == 0 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.ends_with('\r')) line.pop_back();
    ++line_number_;
    return true;
  }

  void cut(const std::string& line, std::vector<std::string>& cells) const {
    cells.assign(1, {});
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
      const char character = line[i];
      if (character == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back() += '"';
        ++i;
      } else if (character == '"') {
        quoted = !quoted;
      } else if (character == separator_ && !quoted) {
        cells.emplace_back();
      } else {
        cells.back() += character;
      }
    }
    if (quoted) throw DataError(fmt::format("{}: a quote is opened and not closed on its line", place()));
    for (std::string& cell : cells) cell = trimmed(cell);
  }

  std::unique_ptr<ByteStream> stream_;
  char separator_;
  std::string buffer_;
  size_t at_ = 0;
  int64_t line_number_ = 0;
};

class CsvSource : public RowSource {
 public:
  CsvSource(const std::filesystem::path& path, const CsvOptions& options)
      : lines_(path, options.separator), options_(options) {
    scan();
    rewind();
  }
  const std::vector<Field>& inputs() const override { return inputs_; }
  const std::vector<Field>& targets() const override { return targets_; }
  int64_t row_count() const override { return row_count_; }
  void read(int64_t count, RowBytes& rows) override;
  void rewind() override {
    lines_.rewind();
    std::vector<std::string> cells;
    if (has_header_) lines_.next(cells);
  }

 private:
  void scan();
  void find_header(const std::vector<std::string>& first);
  void find_targets();
  void scan_targets(const std::vector<std::string>& cells, std::set<std::string>& words);
  void describe_fields(const std::set<std::string>& words);
  void check_width(const std::vector<std::string>& cells) const;
  float input_value(const std::string& cell, size_t column) const;
  void append_target(const std::string& cell, std::vector<std::byte>& out) const;
  std::string column_name(size_t column) const {
    return has_header_ ? fmt::format("column {} ('{}')", column, names_[column]) : fmt::format("column {}", column);
  }

  CsvLines lines_;
  CsvOptions options_;
  bool has_header_ = false;
  std::vector<std::string> names_;  // of the first line: the header, or only its width counts
  std::vector<size_t> target_columns_, input_columns_;
  bool integers_ = true, numbers_ = true;  // what the targets seen so far are
  std::map<std::string, int64_t> class_numbers_;
  std::vector<Field> inputs_, targets_;
  int64_t row_count_ = 0;
};

void CsvSource::find_header(const std::vector<std::string>& first) {
  names_ = first;
  has_header_ = options_.header == CsvOptions::Header::kPresent ||
                (options_.header == CsvOptions::Header::kAuto &&
                 std::none_of(first.begin(), first.end(),
                              [](const std::string& cell) { return number_in<double>(cell).has_value(); }));
}

void CsvSource::find_targets() {
  const size_t width = names_.size();
  if (options_.targets.empty()) target_columns_ = {width - 1};
  for (const std::string& target : options_.targets) {
    const auto named = has_header_ ? std::find(names_.begin(), names_.end(), target) : names_.end();
    if (std::count(names_.begin(), names_.end(), target) > 1 && has_header_) {
      throw DataError(
          fmt::format("{}: target '{}': expected a name of one column, found {} of that name; give the "
                      "column's number from 0 to {}",
                      lines_.name(), target, std::count(names_.begin(), names_.end(), target), width - 1));
    }
    size_t column = static_cast<size_t>(named - names_.begin());
    if (column == width) column = number_in<size_t>(target).value_or(width);
    if (column >= width) {
      throw DataError(fmt::format("{}: target '{}': expected the name of a column{} or its number from 0 to {}",
                                  lines_.name(), target, has_header_ ? "" : " (there is no header)", width - 1) +
                      separator_hint(names_));
    }
    if (std::find(target_columns_.begin(), target_columns_.end(), column) != target_columns_.end()) {
      throw DataError(fmt::format("{}: target '{}': expected each target once, found {} a second time; leave one out",
                                  lines_.name(), target, column_name(column)));
    }
    target_columns_.push_back(column);
  }
  for (size_t column = 0; column < width; ++column) {
    if (std::find(target_columns_.begin(), target_columns_.end(), column) == target_columns_.end()) {
      input_columns_.push_back(column);
    }
  }
  if (input_columns_.empty()) {
    throw DataError(fmt::format("{}: no column is left as an input", lines_.name()) + separator_hint(names_));
  }
}

void CsvSource::check_width(const std::vector<std::string>& cells) const {
  if (cells.size() == names_.size()) return;
  throw DataError(
      fmt::format("{}: expected {} cells as in the first line, found {}", lines_.place(), names_.size(), cells.size()));
}

void CsvSource::scan_targets(const std::vector<std::string>& cells, std::set<std::string>& words) {
  for (const size_t column : target_columns_) {
    const std::string& cell = cells[column];
    if (cell.empty()) throw DataError(fmt::format("{}: {}: the target is empty", lines_.place(), column_name(column)));
    integers_ = integers_ && number_in<int64_t>(cell).has_value();
    numbers_ = numbers_ && number_in<double>(cell).has_value();
    if (target_columns_.size() == 1 && words.size() <= kMostClasses) words.insert(cell);
  }
}

void CsvSource::scan() {
  std::vector<std::string> cells;
  std::set<std::string> words;
  if (!lines_.next(cells)) throw DataError(fmt::format("{}: expected a table, found no line", lines_.name()));
  find_header(cells);
  find_targets();
  bool more = !has_header_ || lines_.next(cells);
  for (; more; more = lines_.next(cells)) {
    check_width(cells);
    for (const size_t column : input_columns_) input_value(cells[column], column);
    scan_targets(cells, words);
    ++row_count_;
  }
  if (row_count_ == 0) throw DataError(fmt::format("{}: expected rows below the header, found none", lines_.name()));
  describe_fields(words);
}

void CsvSource::describe_fields(const std::set<std::string>& words) {
  using Type = CsvOptions::TargetType;
  if (!numbers_ && target_columns_.size() > 1) {
    throw DataError(fmt::format("{}: several targets must all be numbers, one is not", lines_.name()));
  }
  if ((options_.target_type == Type::kInteger && numbers_ && !integers_) ||
      (options_.target_type == Type::kFloat && !numbers_)) {
    throw DataError(fmt::format("{}: a target is no {}", lines_.name(),
                                options_.target_type == Type::kFloat ? "number" : "integer"));
  }
  Field y{.name = "y", .type = ElementType::kInt64};
  if (!numbers_) {
    if (words.size() > kMostClasses) {
      throw DataError(fmt::format("{}: more than {} different words as target: expected class names or numbers",
                                  lines_.name(), kMostClasses));
    }
    for (const std::string& word : words) {
      class_numbers_.emplace(word, static_cast<int64_t>(class_numbers_.size()));
      y.class_names.push_back(word);
    }
    y.class_count = static_cast<int64_t>(words.size());
  } else if (!integers_ || options_.target_type == Type::kFloat) {
    y.type = ElementType::kFloat32;
  }
  if (target_columns_.size() > 1) y.shape = {static_cast<int64_t>(target_columns_.size())};
  targets_ = {y};
  inputs_ = {{.name = "x", .type = ElementType::kFloat32, .shape = {static_cast<int64_t>(input_columns_.size())}}};
}

float CsvSource::input_value(const std::string& cell, size_t column) const {
  if (cell.empty()) return std::numeric_limits<float>::quiet_NaN();
  const std::optional<double> value = number_in<double>(cell);
  if (!value) {
    throw DataError(fmt::format("{}: {}: expected a number, found '{}'", lines_.place(), column_name(column), cell));
  }
  return static_cast<float>(*value);
}

template <class Value>
void append_value(Value value, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void CsvSource::append_target(const std::string& cell, std::vector<std::byte>& out) const {
  if (!class_numbers_.empty()) {
    append_value(class_numbers_.at(cell), out);
  } else if (targets_[0].type == ElementType::kInt64) {
    append_value(number_in<int64_t>(cell).value(), out);
  } else {
    append_value(static_cast<float>(number_in<double>(cell).value()), out);
  }
}

void CsvSource::read(int64_t count, RowBytes& rows) {
  rows.assign(2, {});
  std::vector<std::string> cells;
  for (int64_t i = 0; i < count; ++i) {
    if (!lines_.next(cells))
      throw DataError(fmt::format("{}: the file became shorter while it was read", lines_.name()));
    check_width(cells);
    for (const size_t column : input_columns_) append_value(input_value(cells[column], column), rows[0]);
    for (const size_t column : target_columns_) append_target(cells[column], rows[1]);
  }
}

}  // namespace

std::unique_ptr<RowSource> import_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return std::make_unique<CsvSource>(path, options);
}

}  // namespace tutti::data
