// The core's requirements of a plugin's table, checked before its use. plugrad-probe checks them in a process of its own.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/communicator.h>

#include <string>

namespace plugrad {

// Whether this is a valid backend name: [a-z][a-z0-9_-]*, at most 63 characters.
bool valid_name(const char* name);
// The symbols that every backend plugin and every communicator export.
std::string entry_symbol();
std::string communicator_symbol();
// The reason to refuse a library without this symbol. what: "a plugin".
std::string no_entry_symbol(const std::string& symbol, const char* what);
// Copies the plugin's table to our size, with its name and version, and null for missing fields. Returns why the core cannot
// use the table, or "".
std::string negotiate(const plugrad_backend* table, plugrad_backend& ours);
// Returns why the core cannot use a communicator's table, or "".
std::string negotiate(const plugrad_communicator* table);
// Why a plugin cannot have so many devices, or "".
std::string check_count(uint32_t devices);

}  // namespace plugrad
