// For plugins in C, and in languages that call C, of devices with memory that the host cannot read and in-order queues: the
// functions of queue.hpp. The plugin describes its driver in a plugrad_queue_driver; its table has the functions below in
// the places of the contract's functions for memory and streams. Each stream has a thread, which calls the driver for the
// stream. An op without a kernel of the plugin's own runs as a loop in host memory, on copies of its operands, in its place
// in the queue. Link libplugrad-loops.a and the C++ library (-lstdc++), with tables for exceptions (-Wl,--eh-frame-hdr,
// which compilers of C pass by themselves).
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The driver, as functions. The functions return PLUGRAD_OK or the status of a failure; DEVICE_LOST: the device is gone.
// driver is the argument of plugrad_queues_open, queue what queue_create stored. Functions with a queue are called in the
// order of the stream, by one thread at a time. All of them but finish may return before the work is done.
typedef struct plugrad_queue_driver {
  uint32_t struct_size;  // sizeof(plugrad_queue_driver)
  uint32_t alignment;    // of buffers, in bytes: a power of two
  const char* name;      // of the device
  // Allocates device memory of bytes (above 0). Returns OUT_OF_MEMORY if there is no room. [any]
  plugrad_status (*alloc)(void* driver, uint64_t bytes, plugrad_buffer** buffer);
  // Frees a buffer. Nothing in flight uses the buffer. [any]
  void (*free)(void* driver, plugrad_buffer* buffer);
  // Opens a queue, which lives as long as the process. role: PLUGRAD_COMPUTE_STREAM or PLUGRAD_COPY_STREAM, a hint. [any]
  plugrad_status (*queue_create)(void* driver, uint32_t role, void** queue);
  // Copies bytes from host memory, which stays valid until finish returns.
  plugrad_status (*write)(void* queue, plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes);
  // Copies bytes to host memory. They have arrived when finish returns.
  plugrad_status (*read)(void* queue, void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes);
  // Copies bytes on the device. The ranges do not overlap.
  plugrad_status (*copy)(void* queue, plugrad_buffer* to, uint64_t to_offset, plugrad_buffer* from, uint64_t from_offset,
                         uint64_t bytes);
  // Waits until all work in the queue is done.
  plugrad_status (*finish)(void* queue);
  // Called after finish: whether a kernel since the last call found an index out of range. May be null.
  int (*take_index_error)(void* queue);
  // Returns the reason of the queue's last failure as text, or null. May be null.
  const char* (*message)(void* queue);
} plugrad_queue_driver;

// A kernel of the plugin's own. base.run is plugrad_queues_run; start puts the op into the driver's queue, in the stream's
// thread, and may return before the work is done. The op and its views are copies, valid until start returns.
typedef struct plugrad_queued_kernel {
  plugrad_kernel base;  // first
  plugrad_status (*start)(const struct plugrad_queued_kernel* self, void* queue, const plugrad_op* op);
} plugrad_queued_kernel;

// Opens a device over the driver. functions and driver live as long as the process. Fills info as `open` of the contract
// demands, for a device with streams and memory of its own. options may be null; every option is refused: take the plugin's
// own options out first. Returns INVALID for an option, and OUT_OF_MEMORY; before both it calls host->report. [any]
plugrad_status plugrad_queues_open(const plugrad_host* host, const plugrad_options* options,
                                   const plugrad_queue_driver* functions, void* driver, plugrad_device** device,
                                   plugrad_device_info* info);
// Returns the driver of a device that plugrad_queues_open opened. [any]
void* plugrad_queues_driver(plugrad_device* device);
// Returns the loop on copies for a signature, or null. Ask it for what the plugin has no kernel for. [any]
const plugrad_kernel* plugrad_queues_resolve(plugrad_device* device, const plugrad_signature* signature);

// For the plugin's table and kernels: the contract's functions of the same names, see abi.h.
plugrad_status plugrad_queues_run(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op);
plugrad_status plugrad_queues_alloc(plugrad_device* device, uint64_t bytes, plugrad_buffer** buffer);
void plugrad_queues_free(plugrad_device* device, plugrad_buffer* buffer);
plugrad_status plugrad_queues_copy(plugrad_stream* stream, const plugrad_copy* copy);
plugrad_status plugrad_queues_stream_create(plugrad_device* device, uint32_t role, plugrad_stream** stream);
plugrad_status plugrad_queues_completed(plugrad_stream* stream, uint64_t* number);
plugrad_status plugrad_queues_wait(plugrad_stream* stream, plugrad_stream* other, uint64_t* number);
plugrad_status plugrad_queues_sync(plugrad_stream* stream, plugrad_failure* failure);

#ifdef __cplusplus
}
#endif
