// Checks the owners of files before a search loads them.
#pragma once
#include <string>

namespace plugrad {

// Returns why somebody else may have written a plugin's file, or "". The owner of the file, and of every directory above it,
// must be root, the user of this process or the owner of the core library. Not everybody may write to the file or to such a
// directory, unless users may remove only their own files from the directory (as in /tmp). Write permissions of groups are
// not checked, nor are the directories above the core library: their owners control the core already. path: absolute.
std::string check_ownership(const std::string& path);

}  // namespace plugrad
