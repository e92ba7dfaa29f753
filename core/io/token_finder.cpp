#include <core/io/token_finder.hpp>

namespace plugrad::io {

TokenFinder::TokenFinder(const std::vector<std::pair<std::string, int64_t>>& tokens) {
  for (const auto& [text, id] : tokens) tokens_.add(text, id);
}

void TokenFinder::split(std::string_view text, const std::function<void(std::string_view)>& on_text,
                        const std::function<void(int64_t)>& on_token) const {
  size_t start = 0, at = 0;
  while (at < text.size()) {
    const Prefixes::Match found = tokens_.longest(text.substr(at), [](size_t) { return true; });
    if (found.id < 0) {
      ++at;
      continue;
    }
    if (at > start) on_text(text.substr(start, at - start));
    on_token(found.id);
    at += found.length;
    start = at;
  }
  if (start < text.size()) on_text(text.substr(start));
}

}  // namespace plugrad::io
