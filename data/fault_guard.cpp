// The SIGBUS handler and the copies it guards.
#include "data/fault_guard.h"

#include <ucontext.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

namespace tutti::data {
namespace {

// The copy that this thread is making, where to go on when it faults.
struct GuardedCopy {
  const std::byte* begin;
  const std::byte* end;
  sigjmp_buf resume;
};

thread_local GuardedCopy* volatile current_copy = nullptr;
struct sigaction earlier_action;

void pass_on(int number, siginfo_t* info, void* context) {
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0) {
    earlier_action.sa_sigaction(number, info, context);
  } else if (earlier_action.sa_handler != SIG_DFL && earlier_action.sa_handler != SIG_IGN) {
    earlier_action.sa_handler(number);
  } else {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

void handle_fault(int number, siginfo_t* info, void* context) {
  GuardedCopy* copy = current_copy;
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  const bool from_kernel = info->si_code > 0;  // a signal that a process sent has no address
  if (copy != nullptr && from_kernel && address >= copy->begin && address < copy->end) {
    // The jump leaves the handler without what its return would do: giving the thread back its signal mask.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(copy->resume, 1);
  }
  pass_on(number, info, context);
}

}  // namespace

void install_fault_guard() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action = {};
    action.sa_sigaction = handle_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &earlier_action);
  });
}

bool guarded_copy(std::span<const std::byte> from, std::span<std::byte> to) {
  GuardedCopy copy;
  copy.begin = from.data();
  copy.end = from.data() + from.size();
  // Nothing between here and the jump has a destructor.
  if (sigsetjmp(copy.resume, /*savemask=*/0) != 0) {
    current_copy = nullptr;
    return false;
  }
  current_copy = &copy;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy stays between the two assignments
  std::memcpy(to.data(), from.data(), from.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_copy = nullptr;
  return true;
}

}  // namespace tutti::data
