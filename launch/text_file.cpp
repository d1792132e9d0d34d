#include "launch/text_file.h"

#include <fstream>
#include <iterator>

namespace tutti::launch {

std::optional<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) return std::nullopt;
  return text;
}

}  // namespace tutti::launch
