// Standard output of a run, which must not end with it.
#ifndef TUTTI_LAUNCH_STANDARD_OUTPUT_H
#define TUTTI_LAUNCH_STANDARD_OUTPUT_H

namespace tutti::launch {

/// Puts the null device where standard input, output or error are closed. Called before any file is opened, or that
/// file would take their place and get what is printed.
void open_closed_streams();

/// While it lives, writing to a pipe whose reader has gone fails, and does not end the process.
class IgnoredPipeSignal {
 public:
  IgnoredPipeSignal();
  ~IgnoredPipeSignal();
  IgnoredPipeSignal(const IgnoredPipeSignal&) = delete;
  IgnoredPipeSignal& operator=(const IgnoredPipeSignal&) = delete;

 private:
  void (*earlier_)(int);
};

}  // namespace tutti::launch

#endif
