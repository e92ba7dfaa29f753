// The Vulkan backend as a plugin file. It also loads on machines without a Vulkan library, and then reports 0 devices.
#include <plugrad/backends/vulkan.hpp>

PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) { return plugrad_vulkan_backend(host); }
