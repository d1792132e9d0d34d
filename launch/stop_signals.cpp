#include "launch/stop_signals.h"

#include <signal.h>

#include <atomic>

namespace tutti::launch {

namespace {

// A signal handler can reach nothing but a global.
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number) && number == SIGINT) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
}

constexpr int kSignals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT};

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

StopSignals::~StopSignals() {
  for (const int number : kSignals) signal(number, SIG_DFL);
}

int StopSignals::received() const { return first_signal; }

}  // namespace tutti::launch
