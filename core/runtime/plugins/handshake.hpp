// The core's requirements of a plugin's table, checked before its use. plugrad-probe checks them in a process of its own.
#pragma once
#include <plugrad/sdk/abi.h>

#include <string>

namespace plugrad {

// Whether this is a valid backend name: [a-z][a-z0-9_-]*, at most 63 characters.
bool valid_name(const char* name);
// The symbol that every plugin exports.
std::string entry_symbol();
// The reason to refuse a library without this symbol.
std::string no_entry_symbol();
// Copies the plugin's table to our size, with its name and version, and null for missing fields. Returns why the core cannot
// use the table, or "".
std::string negotiate(const plugrad_backend* table, plugrad_backend& ours);
// Why a plugin cannot have so many devices, or "".
std::string check_count(uint32_t devices);

}  // namespace plugrad
