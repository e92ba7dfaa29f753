// A text as a sequence of characters: the smallest vocabulary for a language model.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io {

// The characters of a text in the order of their code points. Texts are UTF-8; invalid bytes count as U+FFFD.
class PLUGRAD_API Characters {
 public:
  explicit Characters(std::string_view text);

  int64_t size() const { return static_cast<int64_t>(codes_.size()); }
  // Returns the position of each character. Throws Error (invalid) for a character missing in the constructor's text.
  std::vector<int64_t> encode(std::string_view text) const;
  // Returns the text of positions. Throws Error (index_error) for a position out of range.
  std::string decode(std::span<const int64_t> positions) const;

 private:
  std::vector<char32_t> codes_;
};

}  // namespace plugrad::io
