// What a fault that ends a model or the program says.
#ifndef TUTTI_SRC_TRAIN_FAULT_TEXT_H
#define TUTTI_SRC_TRAIN_FAULT_TEXT_H

#include <exception>
#include <string>

namespace tutti::train {

/// The error's own message; of std::bad_alloc, which has none, what to do. Never empty.
std::string fault_text(const std::exception& error);

}  // namespace tutti::train

#endif
