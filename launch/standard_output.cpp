#include "launch/standard_output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace tutti::launch {

void open_closed_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free is the one that open() returns.
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", O_RDWR);
  }
}

IgnoredPipeSignal::IgnoredPipeSignal() : earlier_(signal(SIGPIPE, SIG_IGN)) {}

IgnoredPipeSignal::~IgnoredPipeSignal() { signal(SIGPIPE, earlier_); }

}  // namespace tutti::launch
