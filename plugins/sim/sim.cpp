#include <plugrad/sim.hpp>

extern "C" PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  return plugrad_sim_backend(host);
}
