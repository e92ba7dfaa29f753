// Checks whether a device can run this plugin's code.
#pragma once
#include <string>

namespace plugrad::cuda {

// Returns the device's number of multiprocessors. Throws UNSUPPORTED if there is no code for it. The device is selected.
int demand_architecture(int device);
// Returns the architecture's name as compilers spell it, such as "sm_90".
std::string architecture_name(int device);

}  // namespace plugrad::cuda
