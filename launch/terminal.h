// The terminal a person watches, if there is one.
#ifndef TUTTI_LAUNCH_TERMINAL_H
#define TUTTI_LAUNCH_TERMINAL_H

#include <optional>

namespace tutti::launch {

struct TerminalSize {
  int rows = 0;
  int columns = 0;
};

/// The size of the terminal that standard output ends in; none when it goes to a file or a pipe. Under mpirun, standard
/// output is a terminal without a size that mpirun reads; then what mpirun itself writes to counts.
std::optional<TerminalSize> watched_terminal();

}  // namespace tutti::launch

#endif
