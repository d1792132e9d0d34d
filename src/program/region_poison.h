// Marking memory that nobody may touch, for the address sanitizer. The build picks the source: poisoning costs nothing
// in builds without the sanitizer.
#ifndef TUTTI_SRC_PROGRAM_REGION_POISON_H
#define TUTTI_SRC_PROGRAM_REGION_POISON_H

#include <cstddef>

namespace tutti::program {

/// From now on the sanitizer reports every access to these bytes.
void poison(const void* begin, size_t bytes);
void unpoison(const void* begin, size_t bytes);

}  // namespace tutti::program

#endif
