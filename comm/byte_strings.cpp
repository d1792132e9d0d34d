#include "comm/byte_strings.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace tutti::comm {

std::string pack(std::span<const std::string> strings) {
  std::string packed;
  for (const std::string& text : strings) {
    const auto size = static_cast<uint64_t>(text.size());
    packed.append(reinterpret_cast<const char*>(&size), sizeof(size));
    packed.append(text);
  }
  return packed;
}

std::vector<std::string> unpack(std::string_view packed) {
  std::vector<std::string> strings;
  while (!packed.empty()) {
    uint64_t size = 0;
    if (packed.size() >= sizeof(size)) std::memcpy(&size, packed.data(), sizeof(size));
    if (packed.size() < sizeof(size) || size > packed.size() - sizeof(size)) {
      throw std::invalid_argument(fmt::format(
          "Packed strings: expected a length of at most the {} bytes that are left, found {}", packed.size(), size));
    }
    strings.emplace_back(packed.substr(sizeof(size), size));
    packed.remove_prefix(sizeof(size) + size);
  }
  return strings;
}

}  // namespace tutti::comm
