// Finds special tokens in a text.
#pragma once
#include <core/io/prefixes.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plugrad::io {

class TokenFinder {
 public:
  static constexpr size_t kLongest = 4096;  // bytes of a token, and so of a search at a place of a text
  TokenFinder() = default;
  // Texts, of kLongest bytes at most, and ids. Empty texts are never found.
  explicit TokenFinder(const std::vector<std::pair<std::string, int64_t>>& tokens);

  // Calls on_text for each non-empty part between tokens and on_token for each token, in the order of the text. Of several
  // tokens at the same place the longest counts.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(int64_t)>& on_token) const;

 private:
  Prefixes tokens_;
};

}  // namespace plugrad::io
