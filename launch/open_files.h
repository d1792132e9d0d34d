// How many files this process may have open at once.
#ifndef TUTTI_LAUNCH_OPEN_FILES_H
#define TUTTI_LAUNCH_OPEN_FILES_H

#include <cstdint>

namespace tutti::launch {

/// Raises this process's limit of open files as far as the system lets it (the hard limit), and returns it.
int64_t raise_open_file_limit();

}  // namespace tutti::launch

#endif
