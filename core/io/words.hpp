// Splits a text into words as GPT-2 does before it merges bytes.
#pragma once
#include <string_view>
#include <vector>

namespace plugrad::io {

// Returns the successive matches of 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+. They cover
// the text. With single_digits each digit (\p{N}) first becomes a word of its own, and cuts the text.
std::vector<std::string_view> split_words(std::string_view text, bool single_digits);

}  // namespace plugrad::io
