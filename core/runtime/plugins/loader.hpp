// Checks and loads a plugin's file.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/runtime/runtime.hpp>

#include <string>
#include <vector>

namespace plugrad::loader {

// The plugin files of a directory, sorted by name. Stores why it cannot be read, or "".
std::vector<std::string> candidates(const std::string& directory, std::string& why);

// Who chose a file. The program is responsible for what it names; for what a search finds, the owners of the file and of the
// directories above it count.
enum class Chosen { by_program, by_search };

// Checks the file, tries it in a process of its own, loads it, never unloads it, and agrees with it on its table. Sets the
// record's stage and notes. Throws Error with the reason. Any exception of the plugin becomes an Error.
struct Loaded {
  const plugrad_backend* source;
  plugrad_backend table;  // of our size
};
Loaded load(const std::string& path, PluginRecord& record, Chosen chosen);
// The part of load behind the file, for a table that the program has.
Loaded agree(const plugrad_backend* source);
// Asks a plugin for its number of devices, which may start a driver; first in a process of its own if the plugin comes from
// a file. Where there is none, stores the plugin's reason in the record. Throws Error with the reason if it fails.
uint32_t count(const plugrad_backend& table, PluginRecord& record);
// Opens the device in a process of its own if the plugin comes from a file. Throws Error with the reason if that process
// crashes, hangs or ends early; an orderly failure is left to the caller.
void try_open(const PluginRecord& record, uint32_t device, const OptionList& options);

}  // namespace plugrad::loader
