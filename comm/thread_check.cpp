#include "comm/thread_check.h"

#include <fmt/core.h>

#include <stdexcept>

namespace tutti::comm {

ThreadCheck::ThreadCheck(Binding binding)
    : owner_(binding == Binding::kNow ? std::this_thread::get_id() : std::thread::id()) {}

void ThreadCheck::check(const char* what) const {
  if (owner_ == std::thread::id()) owner_ = std::this_thread::get_id();
  if (owner_ == std::this_thread::get_id()) return;
  throw std::logic_error(fmt::format(
      "{} was called from a thread that is not the communication thread; hand the work to the ExchangeQueue instead",
      what));
}

}  // namespace tutti::comm
