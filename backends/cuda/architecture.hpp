// Checks whether a device can run this plugin's code.
#pragma once

namespace plugrad::cuda {

// Returns the device's number of multiprocessors. Throws UNSUPPORTED if there is no code for it. The device is selected.
int demand_architecture(int device);

}  // namespace plugrad::cuda
