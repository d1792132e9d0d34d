// Which model a crash of the process is to be put down to.
#ifndef TUTTI_SRC_TRAIN_CRASH_LOG_H
#define TUTTI_SRC_TRAIN_CRASH_LOG_H

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tutti::train {

/// While one lives, a thread that crashes (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) as the Suspect of a model appends
/// the line "MODEL signal NUMBER" to the log's file; then the handlers that were there before have their turn. A kill
/// from outside leaves no line: it is nobody's fault. One at a time; construct it before any data set is opened, whose
/// guard against cut files comes first for SIGBUS.
class CrashLog {
 public:
  CrashLog();
  ~CrashLog();
  CrashLog(const CrashLog&) = delete;
  CrashLog& operator=(const CrashLog&) = delete;

  /// Where crashes from now on are noted; before, they are not. The folder must exist, the file need not. A path that
  /// is too long for the system is left alone.
  void open(const std::filesystem::path& file);

  /// How often each model is named in the file. An absent file names none.
  static std::map<std::string, int64_t> counts(const std::filesystem::path& file);
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
