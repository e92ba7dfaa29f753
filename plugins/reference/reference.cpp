// The reference backend as a plugin file.
#include <plugrad/backends/reference.hpp>

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  return plugrad_reference_backend(host);
}
