// The signals that ask a job to write checkpoints and leave.
#ifndef TUTTI_LAUNCH_STOP_SIGNALS_H
#define TUTTI_LAUNCH_STOP_SIGNALS_H

namespace tutti::launch {

/// While it lives, SIGUSR1, SIGUSR2, SIGTERM and the first SIGINT only set a flag; a second SIGINT ends the process as
/// usual. At most one object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The number of the signal that came first; 0 while none has.
  int received() const;
};

}  // namespace tutti::launch

#endif
