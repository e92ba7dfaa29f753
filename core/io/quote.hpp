// Names from files, in messages.
#pragma once
#include <string>

namespace plugrad::io {

// Returns the name in quotes, escaped, on one line of ASCII, and cut after 80 bytes: it may come from a hostile
// file.
std::string quote(const std::string& name);

}  // namespace plugrad::io
