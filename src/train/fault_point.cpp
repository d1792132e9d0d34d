#include "src/train/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace tutti::train {

namespace {

struct Fault {
  std::string point, model, effect;
  int64_t count = 0;
};

std::optional<Fault> wanted_fault() {
  const char* value = std::getenv("TUTTI_FAULT");
  if (value == nullptr) return std::nullopt;
  const std::string text = value;
  const size_t colon = text.find(':');
  const size_t slash = text.substr(0, colon).find('/');
  if (colon == std::string::npos) {
    throw std::invalid_argument("TUTTI_FAULT: expected POINT[/MODEL]:COUNT[:EFFECT], found " + text);
  }
  const size_t effect = text.find(':', colon + 1);
  Fault fault;
  fault.point = text.substr(0, std::min(slash, colon));
  if (slash != std::string::npos) fault.model = text.substr(slash + 1, colon - slash - 1);
  fault.count = std::stoll(text.substr(colon + 1));
  fault.effect = effect == std::string::npos ? "kill" : text.substr(effect + 1);
  return fault;
}

}  // namespace

bool fault_due(std::string_view point, std::string_view model) {
  const std::optional<Fault> fault = wanted_fault();
  if (!fault || point != fault->point || (!fault->model.empty() && model != fault->model)) return false;
  static std::atomic<int64_t> visits = 0;
  return ++visits == fault->count;
}

void fault_point(std::string_view point, std::string_view model) {
  if (!fault_due(point, model)) return;
  const std::string effect = wanted_fault()->effect;
  if (effect == "throw") throw std::runtime_error("a fault that TUTTI_FAULT asked for");
  if (effect == "crash") raise(SIGSEGV);
  kill(getpid(), SIGKILL);
}

}  // namespace tutti::train
