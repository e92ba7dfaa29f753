// The CUDA backend as a plugin file. It also loads on machines without a driver or toolkit, and then reports 0 devices.
#include <plugrad/backends/cuda.hpp>

PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) { return plugrad_cuda_backend(host); }
