#include "src/train/crash_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <set>

#include "data/file_kind.h"

namespace tutti::train {

namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr const char* kMark = " signal ";
constexpr const char* kRun = " run ";
constexpr size_t kStackBytes = 64 << 10;

std::array<struct sigaction, kSignals.size()> earlier_actions;
std::array<char, PATH_MAX> log_file = {};
std::array<char, 64> run_name = {};
thread_local const std::string* volatile suspect = nullptr;

/// Calls only what a signal handler may.
void note(const std::string& model, int number) {
  std::array<char, 512> line = {};
  char* end = std::copy_n(model.data(), std::min<size_t>(model.size(), 256), line.data());
  end = std::copy_n(kMark, std::strlen(kMark), end);
  if (number >= 10) *end++ = static_cast<char>('0' + number / 10);
  *end++ = static_cast<char>('0' + number % 10);
  end = std::copy_n(kRun, std::strlen(kRun), end);
  end = std::copy_n(run_name.data(), std::strlen(run_name.data()), end);
  *end++ = '\n';
  const int file = ::open(log_file.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  // There is nobody left to tell of a write that fails.
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), static_cast<size_t>(end - line.data()));
  ::close(file);
}

void handle_crash(int number, siginfo_t* info, void*) {
  const std::string* model = suspect;
  if (model != nullptr && log_file[0] != '\0') note(*model, number);
  const auto index = std::find(kSignals.begin(), kSignals.end(), number) - kSignals.begin();
  sigaction(number, &earlier_actions[static_cast<size_t>(index)], nullptr);
  // A fault comes again when its instruction is tried again; a signal that was sent does not by itself.
  if (info->si_code <= 0) std::raise(number);
}

}  // namespace

CrashLog::CrashLog() {
  struct sigaction action = {};
  action.sa_sigaction = handle_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &earlier_actions[i]);
}

CrashLog::~CrashLog() {
  log_file[0] = '\0';
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current = {};
    sigaction(kSignals[i], nullptr, &current);
    // Whoever was installed later passes on to this handler, which then still has to be there.
    if (current.sa_sigaction == handle_crash) sigaction(kSignals[i], &earlier_actions[i], nullptr);
  }
}

void CrashLog::open(const std::filesystem::path& file, const std::string& run) {
  const std::string path = std::filesystem::absolute(file).string();
  if (path.size() >= log_file.size()) return;
  run_name.fill('\0');
  run.copy(run_name.data(), run_name.size() - 1);
  log_file.fill('\0');
  path.copy(log_file.data(), path.size());
}

std::map<std::string, int64_t> CrashLog::counts(const std::filesystem::path& file) {
  std::map<std::string, std::set<std::string>> runs;
  if (!data::other_than_regular_file(file).empty()) return {};
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t mark = line.rfind(kMark), run = line.rfind(kRun);
    if (mark != std::string::npos && run != std::string::npos) runs[line.substr(0, mark)].insert(line.substr(run));
  }
  std::map<std::string, int64_t> counts;
  for (const auto& [model, crashed] : runs) counts[model] = static_cast<int64_t>(crashed.size());
  return counts;
}

SignalStack::SignalStack() : memory_(kStackBytes) {
  const stack_t own = {.ss_sp = memory_.data(), .ss_flags = 0, .ss_size = memory_.size()};
  sigaltstack(&own, &earlier_);
}

SignalStack::~SignalStack() { sigaltstack(&earlier_, nullptr); }

Suspect::Suspect(const std::string& model) : outer_(suspect) { suspect = &model; }

Suspect::~Suspect() { suspect = outer_; }

}  // namespace tutti::train
