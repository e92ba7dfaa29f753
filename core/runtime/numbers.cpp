#include <plugrad/runtime/numbers.hpp>

#include <charconv>

namespace plugrad {

std::string number_text(double value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string fixed_text(double value, int digits) {
  char text[512];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits).ptr};
}

}  // namespace plugrad
