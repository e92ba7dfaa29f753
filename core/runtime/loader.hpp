// From a file to a negotiated table.
#pragma once
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/abi.h>

#include <string>
#include <vector>

namespace plugrad::loader {

// The plugin files of a directory, sorted by name.
std::vector<std::string> candidates(const std::string& directory);
// Whether this is a backend's name: [a-z][a-z0-9_-]*.
bool valid_name(const char* name);
// Checks the file, loads it for ever, asks its entry symbol. record.stage says how far it came; throws Error with why.
const plugrad_backend* load(const std::string& path, PluginRecord& record);
// The plugin's table in our size: a field that it does not have is null from here on. Throws Error for one that does not
// keep the contract.
plugrad_backend negotiate(const plugrad_backend* table);

}  // namespace plugrad::loader
