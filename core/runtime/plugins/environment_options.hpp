// Options of a plugin from the environment.
#pragma once
#include <map>
#include <string>

namespace plugrad {

// The options in PLUGRAD_<NAME>_OPTIONS, "threads=4,flush_to_zero=1". Throws Error (invalid) for another form; the message
// begins with "[where]".
std::map<std::string, std::string> environment_options(const std::string& name, const char* where);

}  // namespace plugrad
