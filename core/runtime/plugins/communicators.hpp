// Finds and loads communicators, the plugins that connect processes.
#pragma once
#include <plugrad/sdk/communicator.h>

#include <string>

namespace plugrad::engines {

// Returns the table of a communicator by name ("gloo"), from the first directory of the plugins' search that has its file,
// or of the file at an absolute path. Loads the file on first use. Throws Error; the message lists the known communicators.
const plugrad_communicator& find(const std::string& name);

// Whether a directory of the plugins' search has the file of a communicator. Does not load it.
bool is_present(const std::string& name);

}  // namespace plugrad::engines
