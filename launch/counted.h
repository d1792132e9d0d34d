// Numbers with their nouns.
#ifndef TUTTI_LAUNCH_COUNTED_H
#define TUTTI_LAUNCH_COUNTED_H

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace tutti::launch {

/// "1 model", "2 models": a noun whose plural takes an s.
template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tutti::launch

#endif
