// Standard output of a run, written beside whatever the run does.
#ifndef TUTTI_LAUNCH_OUTPUT_THREAD_H
#define TUTTI_LAUNCH_OUTPUT_THREAD_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tutti::launch {

/// Prints what a person may want to see, in a thread of its own: a reader who pauses (`tutti train | less`, Ctrl-S)
/// holds up that thread alone. What cannot be written (a full disk, a pipe that was closed) is dropped: its loss must
/// not end a run. Needs an IgnoredPipeSignal that lives as long.
class OutputThread {
 public:
  OutputThread();
  /// Waits until everything is written, as long as the reader takes.
  ~OutputThread();
  OutputThread(const OutputThread&) = delete;
  OutputThread& operator=(const OutputThread&) = delete;

  /// Never waits for the reader. Texts are written in the order of the calls.
  void show(std::string_view text);

  /// Whether the reader has yet to take earlier text: what will be outdated soon is better not shown now.
  bool is_behind() const;

 private:
  void write();

  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::string waiting_;   // guarded by mutex_
  bool writing_ = false;  // guarded by mutex_
  bool ended_ = false;    // guarded by mutex_
  std::thread thread_;    // last: it uses all the others
};

}  // namespace tutti::launch

#endif
