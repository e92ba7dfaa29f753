// Loads a plugin's file and negotiates its table.
#pragma once
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/abi.h>

#include <string>
#include <vector>

namespace plugrad::loader {

// The plugin files of a directory, sorted by name.
std::vector<std::string> candidates(const std::string& directory);
// Whether this is a valid backend name: [a-z][a-z0-9_-]*.
bool valid_name(const char* name);
// Checks and loads the file, never unloads it, and calls its entry symbol. Sets record.stage; throws Error with the reason.
const plugrad_backend* load(const std::string& path, PluginRecord& record);
// Copies the plugin's table to our size, with null for fields that it lacks. Throws Error for a table that breaks the
// contract.
plugrad_backend negotiate(const plugrad_backend* table);

}  // namespace plugrad::loader
