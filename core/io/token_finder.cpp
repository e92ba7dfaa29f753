#include <core/io/token_finder.hpp>

#include <algorithm>

namespace plugrad::io {

TokenFinder::TokenFinder(const std::vector<std::pair<std::string, int64_t>>& tokens) {
  for (const auto& [text, id] : tokens) {
    if (!text.empty()) by_first_[static_cast<uint8_t>(text[0])].emplace_back(text, id);
  }
  for (auto& group : by_first_) {
    std::ranges::stable_sort(group, std::ranges::greater{}, [](const auto& token) { return token.first.size(); });
  }
}

void TokenFinder::split(std::string_view text, const std::function<void(std::string_view)>& on_text,
                        const std::function<void(int64_t)>& on_token) const {
  size_t start = 0, at = 0;
  while (at < text.size()) {
    const auto& group = by_first_[static_cast<uint8_t>(text[at])];
    const auto found =
        std::ranges::find_if(group, [&](const auto& token) { return text.substr(at).starts_with(token.first); });
    if (found == group.end()) {
      ++at;
      continue;
    }
    if (at > start) on_text(text.substr(start, at - start));
    on_token(found->second);
    at += found->first.size();
    start = at;
  }
  if (start < text.size()) on_text(text.substr(start));
}

}  // namespace plugrad::io
