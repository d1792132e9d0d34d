#include "launch/live_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "launch/terminal.h"

namespace tutti::launch {

using Clock = std::chrono::steady_clock;

namespace {

std::string number(const nlohmann::json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

/// The newest evaluation's accuracy (or another metric that stands for it), else its loss.
std::string metric_text(const nlohmann::json& report) {
  for (const char* part : {"validation", "test"}) {
    if (!report.contains(part) || !report[part].is_object()) continue;
    const nlohmann::json& results = report[part];
    if (results.contains("accuracy")) return number(results["accuracy"], "{:.4f}");
    for (const auto& [key, value] : results.items()) {
      if (key != "loss") return number(value, "{:.4f}");
    }
    return number(results.value("loss", nlohmann::json()), "{:.4f}");
  }
  return "-";
}

std::string duration_text(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

LiveTable::LiveTable(std::vector<std::string> names, std::chrono::duration<double> interval, OutputThread& output)
    : names_(std::move(names)), interval_(interval), output_(output), started_(Clock::now()), drawn_(started_) {
  for (const std::string& name : names_) rows_[name].last_time = started_;
}

void LiveTable::update(const nlohmann::json& reports) {
  const auto now = Clock::now();
  for (const nlohmann::json& report : reports) {
    const auto found = rows_.find(report.value("name", ""));
    if (found == rows_.end()) continue;
    Row& row = found->second;
    const int64_t step = report.value("step", int64_t{0});
    const double seconds = std::chrono::duration<double>(now - row.last_time).count();
    if (row.last_step >= 0 && seconds > 0) {
      const double rate = static_cast<double>(step - row.last_step) / seconds;
      row.rate = row.rate == 0 ? rate : 0.7 * row.rate + 0.3 * rate;
    }
    row.last_step = step;
    row.last_time = now;
    row.report = report;
  }
}

std::string LiveTable::row_text(const std::string& name, const Row& row, size_t name_width) const {
  const int64_t step = row.report.value("step", int64_t{0});
  const int64_t total = row.report.value("total_steps", int64_t{0});
  const std::string state = row.report.value("state", "waiting");
  const bool running = state == "running" && row.rate > 0;
  return fmt::format("{:<{}}  {:<12} {:>5} {:>15} {:>9} {:>9} {:>8} {:>8}", name, name_width, state,
                     row.report.value("epoch", int64_t{0}), fmt::format("{}/{}", step, total),
                     number(row.report.value("train_loss", nlohmann::json()), "{:.4f}"), metric_text(row.report),
                     running ? fmt::format("{:.0f}/s", row.rate) : "-",
                     running ? duration_text(static_cast<double>(total - step) / row.rate) : "-");
}

std::string LiveTable::summary_line() const {
  std::map<std::string, int> states;
  double left = 0;
  for (const auto& [name, row] : rows_) {
    const std::string state = row.report.value("state", "waiting");
    ++states[state];
    const int64_t steps = row.report.value("total_steps", int64_t{0}) - row.report.value("step", int64_t{0});
    if (state == "running" && row.rate > 0) left = std::max(left, static_cast<double>(steps) / row.rate);
  }
  std::string text;
  for (const auto& [state, count] : states) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return fmt::format("{}; {} passed{}", text,
                     duration_text(std::chrono::duration<double>(Clock::now() - started_).count()),
                     left > 0 ? fmt::format(", about {} left", duration_text(left)) : "");
}

std::string LiveTable::text(int width) {
  size_t name_width = 5;
  for (const std::string& name : names_) name_width = std::max(name_width, name.size());
  name_width = std::min(name_width, static_cast<size_t>(std::max(20, width - 75)));
  std::string text = fmt::format("{:<{}}  {:<12} {:>5} {:>15} {:>9} {:>9} {:>8} {:>8}\n", "model", name_width, "state",
                                 "epoch", "step", "loss", "metric", "rate", "left");
  for (const std::string& name : names_) text += row_text(name.substr(0, name_width), rows_[name], name_width) + '\n';
  return text + summary_line() + '\n';
}

void LiveTable::refresh() {
  if (Clock::now() - drawn_ >= interval_ && !output_.is_behind()) draw();
}

void LiveTable::draw() {
  drawn_ = Clock::now();
  const auto terminal = watched_terminal();
  if (!terminal) {
    output_.show(summary_line() + '\n');
    return;
  }
  const TerminalSize size = *terminal;
  std::string all = text(size.columns);
  std::string shown;
  int lines = 0;
  size_t begin = 0;
  const auto total = static_cast<int>(std::count(all.begin(), all.end(), '\n'));
  for (int line = 0; line < total; ++line) {
    const size_t end = all.find('\n', begin);
    const bool fits = total < size.rows || line < size.rows - 3 || line == total - 1;
    if (fits) {
      shown += "\x1b[K" + all.substr(begin, std::min(end - begin, static_cast<size_t>(size.columns - 1))) + '\n';
      ++lines;
    }
    begin = end + 1;
  }
  output_.show((drawn_lines_ > 0 ? fmt::format("\x1b[{}A", drawn_lines_) : "") + shown);
  drawn_lines_ = lines;
}

void LiveTable::finish() { draw(); }

}  // namespace tutti::launch
