// Lists in the environment.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace plugrad {

// Splits at each separator; keeps empty parts.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) parts.emplace_back();
  }
  return parts;
}

}  // namespace plugrad
