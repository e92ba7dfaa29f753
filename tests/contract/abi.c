/* abi.h alone, as a plugin in C includes it. */
#include <plugrad/sdk/abi.h>

static plugrad_status count(const plugrad_host* host, uint32_t* devices) {
  (void)host;
  *devices = 0;
  return PLUGRAD_OK;
}

const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  static const plugrad_backend table = {
      .struct_size = sizeof(plugrad_backend), .revision = PLUGRAD_REVISION, .layouts = plugrad_layouts, .count = count};
  host->report(host, PLUGRAD_OK, "no hardware");
  return &table;
}
