// Which model a crash of the process is to be put down to.
#ifndef TUTTI_SRC_TRAIN_CRASH_LOG_H
#define TUTTI_SRC_TRAIN_CRASH_LOG_H

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tutti::train {

/// While one lives, a thread that crashes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) as the Suspect of a model appends
/// the line "MODEL signal NUMBER run RUN" to the log's file; then the handlers that were there before have their turn.
/// A kill from outside leaves no line: it is nobody's fault. One at a time; construct it before any data set is opened,
/// whose guard against cut files comes first for SIGBUS.
class CrashLog {
 public:
  CrashLog();
  ~CrashLog();
  CrashLog(const CrashLog&) = delete;
  CrashLog& operator=(const CrashLog&) = delete;

  /// Where crashes from now on are noted, and the name of this run, the same on all its ranks; before, they are not.
  /// The folder must exist, the file need not. A path that is too long for the system is left alone.
  void open(const std::filesystem::path& file, const std::string& run);

  /// In how many runs each model crashed: the members of a team often crash together. An absent file names none.
  static std::map<std::string, int64_t> counts(const std::filesystem::path& file);
};

/// Memory for this thread's signal handlers, so that they can note a stack that has overflowed too.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::vector<std::byte> memory_;
  stack_t earlier_ = {};
};

/// Says, for as long as it lives, that this thread works for a model. They nest.
class Suspect {
 public:
  /// `model` must outlive it.
  explicit Suspect(const std::string& model);
  ~Suspect();
  Suspect(const Suspect&) = delete;
  Suspect& operator=(const Suspect&) = delete;

 private:
  const std::string* outer_;
};

}  // namespace tutti::train

#endif
