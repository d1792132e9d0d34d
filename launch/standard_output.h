// Standard output of a run, which must not end with it.
#ifndef TUTTI_LAUNCH_STANDARD_OUTPUT_H
#define TUTTI_LAUNCH_STANDARD_OUTPUT_H

#include <string_view>

namespace tutti::launch {

/// Puts the null device where standard input, output or error are closed. Called before any file is opened, or that
/// file would take their place and get what is printed.
void open_closed_streams();

/// While it lives, writing to a pipe whose reader has gone fails, and does not end the process. Under it show() never
/// ends a run.
class IgnoredPipeSignal {
 public:
  IgnoredPipeSignal();
  ~IgnoredPipeSignal();
  IgnoredPipeSignal(const IgnoredPipeSignal&) = delete;
  IgnoredPipeSignal& operator=(const IgnoredPipeSignal&) = delete;

 private:
  void (*earlier_)(int);
};

/// Prints at once what a person may want to see, and drops it where that fails (a full disk, a pipe that was closed):
/// for text whose loss must not end a run.
void show(std::string_view text) noexcept;

}  // namespace tutti::launch

#endif
