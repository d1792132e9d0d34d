#include "launch/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace tutti::launch {

namespace {

std::optional<TerminalSize> size_of(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{size.ws_row, size.ws_col};
}

}  // namespace

std::optional<TerminalSize> watched_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return std::nullopt;
  if (const auto own = size_of(STDOUT_FILENO)) return own;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return std::nullopt;
  const std::string launcher = fmt::format("/proc/{}/fd/1", getppid());
  const int descriptor = open(launcher.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  const auto size = isatty(descriptor) != 0 ? size_of(descriptor) : std::nullopt;
  close(descriptor);
  return size;
}

}  // namespace tutti::launch
