// What a fault that ends the program says.
#ifndef TUTTI_LAUNCH_FAULT_TEXT_H
#define TUTTI_LAUNCH_FAULT_TEXT_H

#include <exception>
#include <string>

namespace tutti::launch {

/// The error's own message; of std::bad_alloc, which has none, what to do. Never empty.
std::string fault_text(const std::exception& error);

}  // namespace tutti::launch

#endif
