// The end of a process that cannot go on: its exit code, and its message by a way that cannot hang.
#ifndef TUTTI_COMM_LAST_WORDS_H
#define TUTTI_COMM_LAST_WORDS_H

#include <string_view>

namespace tutti::comm {

/// The exit code of a fault of the program or of the machine.
inline constexpr int kInternalErrorExit = 70;

/// Writes "tutti: MESSAGE" and a line end to standard error. It takes no lock of the C library, so it works while
/// another thread hangs in a print; where standard error takes nothing for a second the message is dropped. Any thread.
void say_last_words(std::string_view message);

}  // namespace tutti::comm

#endif
