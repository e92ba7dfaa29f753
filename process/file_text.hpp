// The bytes of a whole file.
#pragma once
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace plugrad {

// Returns nothing if the file cannot be opened, or not be read to its end: a folder, or the state of a thread that has
// ended since. (A stream's iterators throw there, without the file's name.)
inline std::optional<std::string> file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(text << file.rdbuf())) || file.bad()) return {};
  return std::move(text).str();
}

}  // namespace plugrad
