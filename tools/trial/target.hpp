// The device named by a command's argument.
#pragma once
#include <cstdint>
#include <string>

namespace plugrad::tool {

// Returns a device's name as given; for the path of a plugin's file, loads it and returns its device `index`. Throws Error.
std::string device_of(const std::string& target, int64_t index);

}  // namespace plugrad::tool
