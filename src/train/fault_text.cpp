#include "src/train/fault_text.h"

#include <new>

namespace tutti::train {

std::string fault_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "out of memory: expected the memory that this process asked for, found that its limit (`ulimit -v`, the "
           "cgroup or the machine) is reached; raise it, or use a smaller batch or evaluation_batch, fewer lanes or a "
           "lower run.memory";
  }
  const std::string text = error.what();
  return text.empty() ? "a fault without a message" : text;
}

}  // namespace tutti::train
