// A backend plugin under test: a file, or a linked table.
#pragma once
#include <plugrad/sdk/abi.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace plugrad::conformance {

// The plugin cannot be used at all. what() is one line with the reason.
class Unloadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Plugin {
  std::string source;  // the path, or the origin of the table
  plugrad_backend_entry entry;
  const plugrad_backend* table;
  plugrad_backend first_seen;        // a copy of the table at the first call, to detect changes
  std::vector<std::string> exports;  // the file's exported symbols; empty for a linked plugin
};

// Loads the file and never unloads it. Throws Unloadable, and Breach if its entry function throws.
Plugin load_plugin(const std::string& path, const plugrad_host* host);
// Does the same for a linked entry. Throws Unloadable.
Plugin linked_plugin(plugrad_backend_entry entry, const std::string& source, const plugrad_host* host);

// Returns the names of an ELF file's exported symbols. Throws Unloadable if it is not an ELF file of this machine, or is cut
// short: the system's loader may crash on such a file.
std::vector<std::string> exported_symbols(const std::string& path);

}  // namespace plugrad::conformance
