// The extension "plugrad.together/0" of a plugin whose devices have streams: several ops in one submission, such as the
// updates of all parameters. C11 and C++20. The extension is optional.
//
// Ops         of one run are of one kernel that takes() accepted, without workspace, and independent: what one writes, no
//             other reads or writes. Their numbers on the stream follow one another, in the order of the list. The device
//             behaves as if the ops had been submitted one by one with kernel->run; failures name a number.
// Refusing    After any status but OK, run has submitted nothing and taken no number. UNSUPPORTED and OUT_OF_MEMORY ask the
//             host to submit the ops one by one.
//
// Getting it  backend->get_extension(PLUGRAD_TOGETHER) returns a plugrad_together, or null. The plugin owns it; it is
//             constant and lives as long as the process, and applies to all devices and streams of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist.
// Threads, waiting, ownership, errors: as abi.h states them for every function of a plugin.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_TOGETHER "plugrad.together/0"

typedef struct plugrad_together {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Returns 1 if the device gains from taking several ops of this kernel at once, else 0. Always the same. [any]
  uint32_t (*takes)(plugrad_device* device, const plugrad_kernel* kernel);
  // Submits count ops, at least 2. Reads them, their views and attributes before it returns. [stream-serial]
  plugrad_status (*run)(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* const* ops, uint32_t count);
} plugrad_together;

static_assert(offsetof(plugrad_together, takes) == 8 && offsetof(plugrad_together, run) == 16, "layout");
static_assert(sizeof(plugrad_together) == 24, "layout");

#ifdef __cplusplus
}
#endif
