// Text of a plugin, a file or the environment, for people.
#pragma once
#include <string>
#include <string_view>

namespace plugrad {

// Returns at most `most` bytes of the text without control sequences for a terminal: "?" replaces control characters except
// line breaks and tabs.
std::string printable(std::string_view text, size_t most = 200);

}  // namespace plugrad
