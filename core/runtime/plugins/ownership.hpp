// Whose files a search may load.
#pragma once
#include <string>

namespace plugrad {

// Why somebody else may have written a plugin's file, or "". Its owner, and the owner of every directory above it, must be
// root, the user of this process or the owner of the core library; nobody else may write to them, except to a directory
// where each may remove only his own files (as in /tmp). Groups count as their members' business. The directories above the
// core library are not checked: whoever controls them controls the core. path: absolute.
std::string check_ownership(const std::string& path);

}  // namespace plugrad
