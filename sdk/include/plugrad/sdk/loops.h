// A start for plugins in C, and in languages that call C: kernels for every op and dtype, as plain loops in host memory. A
// plugin returns these for every op that it has no kernel of its own for. Link libplugrad-loops.a and the C++ library
// (-lstdc++).
// C++ has the same as kernel rows: loops.hpp.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// Opens a device of the loops: *loops lives as long as the process. Fills info as `open` of the contract demands, for a
// device with HOST_MEM and without ASYNC, for which the host allocates and copies; change the names in it. options may be
// null; every option is refused. Returns INVALID for an option and OUT_OF_MEMORY, and has then called host->report. [any]
plugrad_status plugrad_loops_open(const plugrad_host* host, const plugrad_options* options, plugrad_device** loops,
                                  plugrad_device_info* info);
// Returns the kernel for a signature, or null. Its `run` takes a null stream, and its buffers are host addresses. [any]
const plugrad_kernel* plugrad_loops_resolve(plugrad_device* loops, const plugrad_signature* signature);

#ifdef __cplusplus
}
#endif
