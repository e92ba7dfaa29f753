// A plugrad backend for @NAME@. From the start it has every kernel for training: plain loops in host memory, from the SDK.
// Replace them by your device's kernels, op by op; plugrad-conform tells whether each kernel computes the right values.
#include <plugrad/sdk/loops.h>

#include <stdio.h>
#include <stdlib.h>

enum { DEVICES = 1 };

// A kernel of this device. The host passes its address to `run`.
typedef struct Kernel {
  plugrad_kernel base;  // first
  const plugrad_host* host;
} Kernel;

struct plugrad_device {
  Kernel add;
  plugrad_device* loops;
};

// Reports the reason of a failure. It must be reported on the failing thread before the function returns the status.
static plugrad_status refuse(const plugrad_host* host, plugrad_status status, const char* reason) {
  host->report(host, status, reason);
  return status;
}

// With HOST_MEM a buffer is the address of its first byte.
static float* f32(const plugrad_view* view) { return (float*)((char*)view->buffer + view->offset); }

// A kernel of your own: find_add below chooses it for dense f32 operands.
static plugrad_status add(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  const float *a = f32(op->views[1]), *b = f32(op->views[2]);
  float* out = f32(op->views[0]);
  for (int64_t i = 0; i < op->views[0]->count; ++i) out[i] = a[i] + b[i];
  return PLUGRAD_OK;
}

static const plugrad_kernel* find_add(plugrad_device* device, const plugrad_signature* key) {
  if (key->outputs != 1 || key->inputs != 2) return NULL;
  const int f32_only = key->dtypes[0] == PLUGRAD_F32 && key->dtypes[1] == PLUGRAD_F32 && key->dtypes[2] == PLUGRAD_F32;
  const uint32_t flags = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32;  // every kernel of an exact op obeys them
  return f32_only && key->layout == 0 && (key->flags & ~flags) == 0 ? &device->add.base : NULL;
}

// Returns the kernel for a signature, or NULL: the host then computes the op in another way.
static const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* key) {
  const plugrad_kernel* own = key->opcode == PLUGRAD_OP_ADD ? find_add(device, key) : NULL;
  return own ? own : plugrad_loops_resolve(device->loops, key);
}

// Stores the number of devices. If the hardware or its driver is missing: store 0, report the reason with PLUGRAD_OK.
static plugrad_status count(const plugrad_host* host, uint32_t* devices) {
  (void)host;
  *devices = DEVICES;
  return PLUGRAD_OK;
}

static plugrad_status open_device(const plugrad_host* host, uint32_t index, const plugrad_options* options,
                                  plugrad_device** device, plugrad_device_info* info) {
  if (index >= DEVICES) return refuse(host, PLUGRAD_INVALID, "[open] there is one device, @NAME@:0");
  plugrad_device* opened = calloc(1, sizeof *opened);
  if (!opened) return refuse(host, PLUGRAD_OUT_OF_MEMORY, "[open] no memory for the device's handle");
  // Describes memory for the host to allocate, read and write. Otherwise provide alloc, free and copy in the table below,
  // and take HOST_MEM out of info->capabilities.
  const plugrad_status status = plugrad_loops_open(host, options, &opened->loops, info);
  if (status != PLUGRAD_OK) {
    free(opened);
    return status;
  }
  snprintf(info->name, sizeof info->name, "@NAME@");
  opened->add = (Kernel){{.struct_size = sizeof(plugrad_kernel), .run = add}, host};
  *device = opened;
  return PLUGRAD_OK;
}

static const void* get_extension(const char* name) {
  (void)name;
  return NULL;
}

static const plugrad_backend table = {
    .struct_size = sizeof(plugrad_backend),
    .revision = PLUGRAD_REVISION,
    .layouts = plugrad_layouts,
    .name = "@NAME@",
    .version = "0.1",
    .count = count,
    .open = open_device,
    .resolve = resolve,
    .get_extension = get_extension,
    .unnamed_use = PLUGRAD_ONLY_BY_NAME,
};

const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  (void)host;
  return &table;
}
