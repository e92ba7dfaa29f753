#include <core/runtime/dispatch/printable.hpp>

namespace plugrad {

std::string printable(std::string_view text, size_t most) {
  std::string shown(text.substr(0, most));
  for (size_t i = 0; i < shown.size(); ++i) {
    const auto c = static_cast<unsigned char>(shown[i]);
    const bool second = i > 0 && static_cast<unsigned char>(shown[i - 1]) == 0xc2 && c >= 0x80 && c < 0xa0;  // U+0080 ..
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) shown[i] = '?';
    if (second) shown.replace(--i, 2, "?");
  }
  if (text.size() > most) shown += "...";
  return shown;
}

}  // namespace plugrad
