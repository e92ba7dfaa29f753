// The CPU backend as a plugin file.
#include <plugrad/backends/cpu.hpp>

PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) { return plugrad_cpu_backend(host); }
