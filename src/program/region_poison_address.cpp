// Builds with the address sanitizer: memory is marked in its shadow.
#include <sanitizer/asan_interface.h>

#include "src/program/region_poison.h"

namespace tutti::program {

void poison(const void* begin, size_t bytes) { __asan_poison_memory_region(begin, bytes); }
void unpoison(const void* begin, size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }

}  // namespace tutti::program
