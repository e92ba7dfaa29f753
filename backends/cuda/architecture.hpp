// Whether a device runs the code that this plugin was made with.
#pragma once

namespace plugrad::cuda {

// How many multiprocessors the device has. Throws UNSUPPORTED where there is no code for it. The device is selected.
int demand_architecture(int device);

}  // namespace plugrad::cuda
