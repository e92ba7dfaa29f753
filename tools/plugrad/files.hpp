// Files and folders by their paths. <filesystem> is slow to compile; these functions keep it out of their callers' sources.
#pragma once
#include <optional>
#include <string>

namespace plugrad::tool {

std::string absolute_path(const std::string& path);
std::string joined_path(const std::string& folder, const std::string& name);
// Returns the folder of a file, or "." for a name without a folder.
std::string folder_of(const std::string& file);
// Creates a folder, and the folders above it, where they do not exist. Throws Error (io_error).
void create_folder(const std::string& path);

// A file with code mapped into this process.
struct Mapping {
  std::string file;  // the path without links
  std::string line;  // of /proc/self/maps
};
// Returns nothing if the file does not exist or is not mapped.
std::optional<Mapping> mapping_of(const std::string& path);

}  // namespace plugrad::tool
