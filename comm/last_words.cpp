// The end of a process that cannot go on: its exit code, and its message by a way that cannot hang.
#include "comm/last_words.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>

namespace tutti::comm {
namespace {

constexpr int kPatienceMilliseconds = 1000;

}  // namespace

void say_last_words(std::string_view message) {
  const std::string line = "tutti: " + std::string(message) + "\n";
  for (size_t begin = 0; begin < line.size();) {
    pollfd error_stream = {STDERR_FILENO, POLLOUT, 0};
    if (poll(&error_stream, 1, kPatienceMilliseconds) != 1) return;
    // A pipe that is ready takes this much at once: more could block.
    const ssize_t count = write(STDERR_FILENO, line.data() + begin, std::min<size_t>(line.size() - begin, PIPE_BUF));
    if (count <= 0) return;
    begin += static_cast<size_t>(count);
  }
}

}  // namespace tutti::comm
