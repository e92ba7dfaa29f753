// The extension "plugrad.native/0" of a plugin whose devices have streams: how the streams of the contract and those of the
// device's own API come after each other, and how a host is told that work is over instead of asking for it. Memory that
// another library wrote on the same device is used without a race, and without waiting for the device, by these functions.
// C11 and C++20. Offering it is optional; a plugin that offers it fills in every function.
//
// Getting it  backend->get_extension(PLUGRAD_NATIVE) returns a plugrad_native, or null. The plugin owns it; it is constant
//             and lives as long as the process, and serves all devices and streams of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist. A function
//             that changes its meaning gets a new name, "plugrad.native/1", and a plugin may offer both.
// Threads, waiting, ownership, errors: as abi.h states them for every function of a plugin.
//
// A native stream is a stream of the device's own API, passed as its handle without any wrapping. It belongs to the same
// device as the plugin's stream beside it; whoever passes it owns it and keeps it alive until the call returns. What the
// handle is follows from plugrad_device_info::dlpack_type:
//   2 (CUDA)   a cudaStream_t. Null and cudaStreamLegacy (1) are the legacy default stream, cudaStreamPerThread (2) is the
//              calling thread's default stream.
//   10 (ROCm)  a hipStream_t. Null is the default stream.
//   others     what the plugin's documentation says. Null is the default stream of the device, if the API has one.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_NATIVE "plugrad.native/0"

typedef struct plugrad_native {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Stores the native handle of a stream. The plugin owns it, and it lives as long as the stream: others may wait for it,
  // make it wait, and submit work of their own; they never destroy it. Never waits. [any]
  plugrad_status (*handle)(plugrad_stream* stream, void** native);
  // Submits a wait that takes `number` as an op does: all that was submitted to `native` before this call ends before it,
  // and what is submitted to `stream` afterwards starts after it. Where `native` is this stream's own handle, it stands for
  // the work that others submitted to that. Only the device waits. As kernel->run otherwise. [stream-serial]
  plugrad_status (*wait)(plugrad_stream* stream, uint64_t number, void* native);
  // Submits a signal that takes `number` as an op does: what is submitted to `native` after this call starts after `number`
  // and all before it on `stream` has ended, well or not. Only the device waits. As kernel->run otherwise. [stream-serial]
  plugrad_status (*signal)(plugrad_stream* stream, uint64_t number, void* native);
  // Calls callback(context) once, soon after nothing up to `number` is in flight: done, failed or dropped, as for
  // completed, which from then on answers at least `number`. It waits for no work that is submitted after this call. The
  // callback runs on a thread of the plugin, or on the calling thread before notify returns; it calls no function of a
  // plugin, does not wait, and throws nothing. `context` is the caller's, and has to live until the callback has run.
  // A number that the stream has not been given yet is INVALID. After any status but OK the callback never runs. On a device
  // that is lost it runs at once, or as soon as the loss is found. At the end of the process it may never run. [any]
  plugrad_status (*notify)(plugrad_stream* stream, uint64_t number, void (*callback)(void* context), void* context);
} plugrad_native;

static_assert(offsetof(plugrad_native, handle) == 8 && offsetof(plugrad_native, wait) == 16, "layout");
static_assert(offsetof(plugrad_native, signal) == 24 && offsetof(plugrad_native, notify) == 32, "layout");
static_assert(sizeof(plugrad_native) == 40, "layout");

#ifdef __cplusplus
}
#endif
