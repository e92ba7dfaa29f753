// A start for plugins in C, and in languages that call C: kernels for every op and dtype, as plain loops in host memory. A
// plugin returns these kernels for every op without a kernel of its own. Link libplugrad-loops.a and the C++ library
// (-lstdc++). The functions here throw no exceptions inside, except where memory is short: a plugin may be linked without
// tables for exceptions (.eh_frame_hdr).
// C++ has the same kernels as rows: loops.hpp.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// Opens a device of the loops: *loops lives as long as the process. Fills info as `open` of the contract demands, for a
// device with HOST_MEM and without ASYNC: the host allocates and copies. Change the names in info. options may be null;
// every option is refused. Returns INVALID for an option, and OUT_OF_MEMORY; before both it calls host->report. [any]
plugrad_status plugrad_loops_open(const plugrad_host* host, const plugrad_options* options, plugrad_device** loops,
                                  plugrad_device_info* info);
// Returns the kernel for a signature, or null. Its `run` takes a null stream, and its buffers are host addresses. [any]
const plugrad_kernel* plugrad_loops_resolve(plugrad_device* loops, const plugrad_signature* signature);

#ifdef __cplusplus
}
#endif
