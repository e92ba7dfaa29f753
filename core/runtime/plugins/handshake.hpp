// What the core requires of a plugin's table before it uses it. plugrad-probe checks the same in a process of its own.
#pragma once
#include <plugrad/sdk/abi.h>

#include <string>

namespace plugrad {

// Whether this is a valid backend name: [a-z][a-z0-9_-]*, at most 63 characters.
bool valid_name(const char* name);
// The symbol that every plugin exports.
std::string entry_symbol();
// Why a library without that symbol is no plugin.
std::string no_entry_symbol();
// Copies the plugin's table to our size, with its name and version, and null for fields that it lacks. Returns why the core
// cannot use it, or "".
std::string negotiate(const plugrad_backend* table, plugrad_backend& ours);
// Why a plugin cannot have that many devices, or "".
std::string check_count(uint32_t devices);

}  // namespace plugrad
