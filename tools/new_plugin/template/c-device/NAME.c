// A plugrad backend for @NAME@, a device with memory of its own and in-order queues. From the start it has every op for
// training: the SDK's loops, on copies of the operands in host memory, in their place in the queue. Replace them by your
// device's kernels, op by op; plugrad-conform tells whether each kernel computes the right values.
#include <plugrad/sdk/queue.h>

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 1, ALIGNMENT = 256 };

// --- The driver. These functions stand for it, in host memory: put your driver's functions in their place. Functions with a
// queue may enqueue and return; finish waits.

static char* bytes_of(plugrad_buffer* buffer) { return (char*)buffer; }

static plugrad_status driver_alloc(void* driver, uint64_t bytes, plugrad_buffer** buffer) {
  (void)driver;
  if (bytes > SIZE_MAX / 2) return PLUGRAD_OUT_OF_MEMORY;
  *buffer = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return *buffer ? PLUGRAD_OK : PLUGRAD_OUT_OF_MEMORY;
}

static void driver_free(void* driver, plugrad_buffer* buffer) {
  (void)driver;
  free(buffer);
}

static plugrad_status queue_create(void* driver, uint32_t role, void** queue) {
  (void)role;
  *queue = driver;
  return PLUGRAD_OK;
}

static plugrad_status queue_write(void* queue, plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) {
  (void)queue;
  memcpy(bytes_of(to) + offset, from, bytes);
  return PLUGRAD_OK;
}

static plugrad_status queue_read(void* queue, void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) {
  (void)queue;
  memcpy(to, bytes_of(from) + offset, bytes);
  return PLUGRAD_OK;
}

static plugrad_status queue_copy(void* queue, plugrad_buffer* to, uint64_t to_offset, plugrad_buffer* from,
                                 uint64_t from_offset, uint64_t bytes) {
  (void)queue;
  memcpy(bytes_of(to) + to_offset, bytes_of(from) + from_offset, bytes);
  return PLUGRAD_OK;
}

static plugrad_status queue_finish(void* queue) {
  (void)queue;
  return PLUGRAD_OK;
}

static const plugrad_queue_driver driver = {
    .struct_size = sizeof(plugrad_queue_driver),
    .alignment = ALIGNMENT,
    .name = "@NAME@",
    .alloc = driver_alloc,
    .free = driver_free,
    .queue_create = queue_create,
    .write = queue_write,
    .read = queue_read,
    .copy = queue_copy,
    .finish = queue_finish,
};

// --- Kernels of your own. Starts a kernel of your device: find_add below chooses it for dense f32 operands.

static float* f32(const plugrad_view* view) { return (float*)(bytes_of(view->buffer) + view->offset); }

static plugrad_status start_add(const plugrad_queued_kernel* kernel, void* queue, const plugrad_op* op) {
  (void)kernel, (void)queue;
  const float *a = f32(op->views[1]), *b = f32(op->views[2]);
  float* out = f32(op->views[0]);
  for (int64_t i = 0; i < op->views[0]->count; ++i) out[i] = a[i] + b[i];
  return PLUGRAD_OK;
}

static const plugrad_queued_kernel add = {{.struct_size = sizeof(plugrad_kernel), .run = plugrad_queues_run}, start_add};

static const plugrad_kernel* find_add(const plugrad_signature* key) {
  if (key->outputs != 1 || key->inputs != 2) return NULL;
  const int f32_only = key->dtypes[0] == PLUGRAD_F32 && key->dtypes[1] == PLUGRAD_F32 && key->dtypes[2] == PLUGRAD_F32;
  const uint32_t flags = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32;  // every kernel of an exact op obeys them
  return f32_only && key->layout == 0 && (key->flags & ~flags) == 0 ? &add.base : NULL;
}

// Returns the kernel for a signature, or NULL: the host then computes the op in another way.
static const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* key) {
  const plugrad_kernel* own = key->opcode == PLUGRAD_OP_ADD ? find_add(key) : NULL;
  return own ? own : plugrad_queues_resolve(device, key);
}

// Stores the number of devices. If the hardware or its driver is missing: store 0, report the reason with PLUGRAD_OK.
static plugrad_status count(const plugrad_host* host, uint32_t* devices) {
  (void)host;
  *devices = DEVICES;
  return PLUGRAD_OK;
}

static plugrad_status open_device(const plugrad_host* host, uint32_t index, const plugrad_options* options,
                                  plugrad_device** device, plugrad_device_info* info) {
  if (index >= DEVICES) {
    host->report(host, PLUGRAD_INVALID, "[open] there is one device, @NAME@:0");
    return PLUGRAD_INVALID;
  }
  return plugrad_queues_open(host, options, &driver, NULL, device, info);
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
    .alloc = plugrad_queues_alloc,
    .free = plugrad_queues_free,
    .copy = plugrad_queues_copy,
    .stream_create = plugrad_queues_stream_create,
    .completed = plugrad_queues_completed,
    .wait = plugrad_queues_wait,
    .sync = plugrad_queues_sync,
    .unnamed_use = PLUGRAD_ONLY_BY_NAME,
};

const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  (void)host;
  return &table;
}
