#include <plugrad/io/characters.hpp>

#include <core/io/unicode.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>

namespace plugrad::io {

Characters::Characters(std::string_view text) {
  constexpr size_t kCodes = 0x110000;
  std::vector<bool> seen(kCodes);
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    seen[character.code] = true;
    at += character.bytes;
  }
  for (size_t code = 0; code < kCodes; ++code) {
    if (seen[code]) codes_.push_back(static_cast<char32_t>(code));
  }
}

std::vector<int64_t> Characters::encode(std::string_view text) const {
  std::vector<int64_t> positions;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const auto found = std::ranges::lower_bound(codes_, character.code);
    if (found == codes_.end() || *found != character.code) {
      throw Error(Code::invalid, "[Characters] '" + std::string(text.substr(at, character.bytes)) + "' is not one of the " +
                                     std::to_string(size()) +
                                     " characters: make the vocabulary of all texts that you encode");
    }
    positions.push_back(found - codes_.begin());
    at += character.bytes;
  }
  return positions;
}

std::string Characters::decode(std::span<const int64_t> positions) const {
  std::string text;
  for (const int64_t position : positions) {
    if (position < 0 || position >= size()) {
      throw Error(Code::index_error, "[Characters] position " + std::to_string(position) + " is out of range: there are " +
                                         std::to_string(size()) + " characters");
    }
    append_utf8(codes_[static_cast<size_t>(position)], text);
  }
  return text;
}

}  // namespace plugrad::io
