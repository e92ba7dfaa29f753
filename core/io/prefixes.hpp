// Finds the longest prefix of a text among many texts, in time proportional to the prefix.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plugrad::io {

// A trie of bytes.
class Prefixes {
 public:
  struct Match {
    int64_t id = -1;    // -1: no match
    size_t length = 0;  // in bytes
  };

  // id: 0 or more. Of equal texts the first counts.
  void add(std::string_view text, int64_t id) {
    uint32_t node = 0;
    for (const char byte : text) {
      const auto [next, is_new] = steps_.try_emplace(step(node, byte), static_cast<uint32_t>(ids_.size()));
      if (is_new) ids_.push_back(-1);
      node = next->second;
    }
    if (ids_[node] < 0) ids_[node] = id;
  }
  // Returns the longest non-empty text at the beginning of `text`. ends(n) says whether a match may end after n bytes.
  template <class Ends> Match longest(std::string_view text, Ends ends) const {
    Match found;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto next = steps_.find(step(node, text[i]));
      if (next == steps_.end()) break;
      node = next->second;
      if (ids_[node] >= 0 && ends(i + 1)) found = {ids_[node], i + 1};
    }
    return found;
  }

 private:
  static uint64_t step(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

  std::vector<int64_t> ids_{-1};  // by node
  std::unordered_map<uint64_t, uint32_t> steps_;
};

}  // namespace plugrad::io
