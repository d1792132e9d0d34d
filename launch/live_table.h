// What a person sees while a job runs: a table that is redrawn on a terminal, plain lines elsewhere.
#ifndef TUTTI_LAUNCH_LIVE_TABLE_H
#define TUTTI_LAUNCH_LIVE_TABLE_H

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/output_thread.h"

namespace tutti::launch {

/// Collects the models' reports (as launch/model_report.h makes them) and shows them.
class LiveTable {
 public:
  /// `names` in the order of the job. `output` must live as long.
  LiveTable(std::vector<std::string> names, std::chrono::duration<double> interval, OutputThread& output);

  /// Takes the newest reports of some models.
  void update(const nlohmann::json& reports);

  /// Draws when the interval has passed and the reader has taken what was drawn before.
  void refresh();

  /// Draws a last time, and leaves the table standing.
  void finish();

  /// The text of the table or lines that would be drawn now, `width` columns wide.
  std::string text(int width);

 private:
  struct Row {
    nlohmann::json report = nlohmann::json::object();
    double rate = 0;  // steps per second, smoothed
    int64_t last_step = -1;
    std::chrono::steady_clock::time_point last_time;
  };
  std::string row_text(const std::string& name, const Row& row, size_t name_width) const;
  std::string summary_line() const;
  void draw();

  std::vector<std::string> names_;
  std::chrono::duration<double> interval_;
  OutputThread& output_;
  std::map<std::string, Row> rows_;
  std::chrono::steady_clock::time_point started_, drawn_;
  int drawn_lines_ = 0;
};

}  // namespace tutti::launch

#endif
