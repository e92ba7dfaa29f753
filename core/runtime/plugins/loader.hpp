// Checks and loads a plugin's file.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/communicator.h>
#include <plugrad/runtime/runtime.hpp>

#include <string>
#include <vector>

namespace plugrad::loader {

constexpr const char* kBackendFile = "libplugrad-backend-";
constexpr const char* kCommunicatorFile = "libplugrad-communicator-";

// The plugin files of a directory with this prefix, sorted by name. Stores why it cannot be read, or "".
std::vector<std::string> candidates(const std::string& directory, std::string& why, const char* prefix = kBackendFile);

// Who chose a file. The program is responsible for files it names; for files of a search, the owners of the file and of the
// directories above it count.
enum class Chosen { by_program, by_search };

// Checks the file, tries it in a process of its own, loads it, never unloads it, and agrees with it on its table. Sets the
// record's stage and notes. Throws Error with the reason. Any exception of the plugin becomes an Error.
struct Loaded {
  const plugrad_backend* source;
  plugrad_backend table;  // of our size
};
Loaded load(const std::string& path, PluginRecord& record, Chosen chosen);
// The same for a communicator, whose table is used as it is.
const plugrad_communicator& load_communicator(const std::string& path, PluginRecord& record, Chosen chosen);
// The last step of load, for a table given by the program.
Loaded agree(const plugrad_backend* source);
// Asks a plugin for its number of devices; first in a process of its own if the plugin comes from a file. This may start a
// driver. If the plugin has no device, stores its reason in the record. Throws Error with the reason if the plugin fails.
uint32_t count(const plugrad_backend& table, PluginRecord& record);
// Opens the device in a process of its own if the plugin comes from a file. Throws Error with the reason if this process
// crashes, hangs or ends early; an orderly failure is left to the caller.
void try_open(const PluginRecord& record, uint32_t device, const OptionList& options);

}  // namespace plugrad::loader
