// A backend plugin under test: a file, or a table that is linked in.
#pragma once
#include <plugrad/sdk/abi.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace plugrad::conformance {

// The plugin cannot be used at all; what() is one line that says why.
class Unloadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Plugin {
  std::string source;  // the path, or where the table comes from
  plugrad_backend_entry entry;
  const plugrad_backend* table;
  plugrad_backend first_seen;        // the table at its first call, to find a table that changes
  std::vector<std::string> exports;  // what the file exports; empty for a linked plugin
};

// Loads the file and leaves it loaded for ever. Throws Unloadable.
Plugin load_plugin(const std::string& path, const plugrad_host* host);
// The same for an entry that is linked in. Throws Unloadable.
Plugin linked_plugin(plugrad_backend_entry entry, const std::string& source, const plugrad_host* host);

// The names of the symbols that an ELF file of this machine defines for others. Throws Unloadable where the file is none,
// or is cut short: the system's loader may die of such a file.
std::vector<std::string> exported_symbols(const std::string& path);

}  // namespace plugrad::conformance
