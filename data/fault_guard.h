// Copies out of memory-mapped files that survive the file being cut or its disk failing.
#ifndef TUTTI_DATA_FAULT_GUARD_H
#define TUTTI_DATA_FAULT_GUARD_H

#include <cstddef>
#include <span>

namespace tutti::data {

/// Installs the process's SIGBUS handler, once; later calls do nothing. Faults that no guarded_copy() awaits go to the
/// handler that was installed before.
void install_fault_guard();

/// Copies `from`, a part of a file mapping, to `to`. Returns false when a page of `from` could not be read (SIGBUS);
/// `to` is then undefined. Requires install_fault_guard() and to.size() == from.size(). For any thread, without a lock.
bool guarded_copy(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace tutti::data

#endif
