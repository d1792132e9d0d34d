#include "src/train/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tutti::train {

namespace {

int64_t microseconds(Trace::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

}  // namespace

Trace::Trace(int rank, bool enabled) : rank_(rank), enabled_(enabled) {}

void Trace::record(const char* what, const std::string& model, int lane, Clock::time_point begin, Clock::time_point end,
                   int64_t first_step, int64_t last_step) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  events_.push_back({what, model, lane, microseconds(begin), microseconds(end), first_step, last_step});
}

std::string Trace::events() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Event& event : events_) {
    const nlohmann::json json = {{"name", event.model},
                                 {"cat", event.what},
                                 {"ph", "X"},
                                 {"pid", rank_},
                                 {"tid", event.lane},
                                 {"ts", event.begin_us},
                                 {"dur", event.end_us - event.begin_us},
                                 {"args", {{"first_step", event.first_step}, {"last_step", event.last_step}}}};
    text += (text.empty() ? "" : ",\n") + json.dump();
  }
  return text;
}

}  // namespace tutti::train
