// The words into which GPT-2 splits a text before it merges bytes.
#pragma once
#include <string_view>
#include <vector>

namespace plugrad::io {

// Returns the matches, one after another, of 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+,
// which cover the text. With single_digits it first cuts the text at each digit (\p{N}), which becomes a word of its own.
std::vector<std::string_view> split_words(std::string_view text, bool single_digits);

}  // namespace plugrad::io
