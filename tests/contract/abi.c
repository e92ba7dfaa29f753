/* Includes only the C headers, as a plugin in C does. */
#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/communicator.h>
#include <plugrad/sdk/forms.h>
#include <plugrad/sdk/linalg.h>
#include <plugrad/sdk/list.h>
#include <plugrad/sdk/native.h>

static plugrad_status count(const plugrad_host* host, uint32_t* devices) {
  (void)host;
  *devices = 0;
  return PLUGRAD_OK;
}

static plugrad_status notify(plugrad_stream* stream, uint64_t number, void (*callback)(void* context), void* context) {
  (void)stream;
  (void)number;
  callback(context);
  return PLUGRAD_OK;
}

static const void* get_extension(const char* name) {
  static const plugrad_native native = {.struct_size = sizeof(plugrad_native), .notify = notify};
  return *name ? &native : NULL;
}

const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  static const plugrad_backend table = {.struct_size = sizeof(plugrad_backend),
                                        .revision = PLUGRAD_REVISION,
                                        .layouts = plugrad_layouts,
                                        .count = count,
                                        .get_extension = get_extension};
  host->report(host, PLUGRAD_OK, "no hardware");
  return &table;
}

static plugrad_status start(plugrad_group* group, const plugrad_collective* collective, plugrad_work** work) {
  (void)group;
  (void)work;
  return collective->kind == PLUGRAD_COLL_BARRIER ? PLUGRAD_TIMED_OUT : PLUGRAD_UNSUPPORTED;
}

const plugrad_communicator* plugrad_communicator_v0(const plugrad_host* host) {
  static const plugrad_communicator table = {.struct_size = sizeof(plugrad_communicator),
                                             .layout = PLUGRAD_COMMUNICATOR_LAYOUT,
                                             .name = "none",
                                             .version = "0",
                                             .start = start};
  (void)host;
  return &table;
}
