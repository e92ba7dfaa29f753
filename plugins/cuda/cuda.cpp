// The CUDA backend as a file. It loads where there is no driver and no toolkit, and counts no devices there.
#include <plugrad/backends/cuda.hpp>

PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) { return plugrad_cuda_backend(host); }
