// Several byte strings as one, and back.
#ifndef TUTTI_COMM_BYTE_STRINGS_H
#define TUTTI_COMM_BYTE_STRINGS_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::comm {

/// Each string as its length (8 bytes, this machine's order) and its bytes. A string may hold any bytes.
std::string pack(std::span<const std::string> strings);

/// The strings that pack() made `packed` from. Throws std::invalid_argument where a length does not fit.
std::vector<std::string> unpack(std::string_view packed);

}  // namespace tutti::comm

#endif
