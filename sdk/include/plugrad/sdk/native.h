// The extension "plugrad.native/0" of a plugin for devices with streams. It orders work between the streams of abi.h and
// the streams of the device's own API, and notifies the host when work has ended, so the host need not poll. The host can
// then use memory written by another library on the same device without a race and without waiting for the device.
// C11 and C++20. The extension is optional; a plugin with the extension provides every function.
//
// Getting it  backend->get_extension(PLUGRAD_NATIVE) returns a plugrad_native, or null. The plugin owns it; it is constant
//             and lives as long as the process, and applies to all devices and streams of the plugin.
// Growth      struct_size comes first and fields are appended only: a field beyond struct_size does not exist. If a function
//             changes its meaning, the extension gets a new name, "plugrad.native/1", and a plugin may offer both.
// Threads, waiting, ownership, errors: as abi.h states them for every function of a plugin.
//
// A native stream is a stream of the device's own API, passed as its plain handle. It belongs to the same device as the
// plugin's stream in the same call; the caller owns it and keeps it alive until the call returns. The type of the handle
// depends on plugrad_device_info::dlpack_type:
//   2 (CUDA)   a cudaStream_t. Null and cudaStreamLegacy (1) are the legacy default stream, cudaStreamPerThread (2) is the
//              calling thread's default stream.
//   10 (ROCm)  a hipStream_t. Null is the default stream.
//   else       as the plugin documents it. Null is the default stream of the device, if the API has a default stream.
#pragma once
#include <plugrad/sdk/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_NATIVE "plugrad.native/0"

typedef struct plugrad_native {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  // Stores the native handle of a stream. The plugin owns it, and it lives as long as the stream. Users of the handle may
  // wait for it, make it wait, and submit their own work to it; they must not destroy it. Never waits. [any]
  plugrad_status (*handle)(plugrad_stream* stream, void** native);
  // Submits a wait, which takes `number` as an op does: work submitted to `stream` after this call starts after all work
  // submitted to `native` before this call. If `native` is this stream's own handle, the wait is for the work that others
  // submitted to the handle. Only the device waits. As kernel->run otherwise. [stream-serial]
  plugrad_status (*wait)(plugrad_stream* stream, uint64_t number, void* native);
  // Submits a signal, which takes `number` as an op does: work submitted to `native` after this call starts after `number`
  // and all earlier numbers of `stream` have ended, even by failing. Only the device waits. As kernel->run otherwise.
  // [stream-serial]
  plugrad_status (*signal)(plugrad_stream* stream, uint64_t number, void* native);
  // Calls callback(context) once, soon after nothing up to `number` is in flight: each is done, failed or dropped, and
  // completed stores at least `number` from then on. The callback does not wait for work submitted after this call. It
  // runs on a thread of the plugin, or on the calling thread before notify returns; it must not call a plugin, wait, or
  // throw. The caller owns `context` and keeps it alive until the callback has run. Returns INVALID for a number not given
  // to the stream yet. After any status but OK the callback never runs. If the device is lost, the callback runs at once, or
  // as soon as the loss is found. It may never run if the process ends first. [any]
  plugrad_status (*notify)(plugrad_stream* stream, uint64_t number, void (*callback)(void* context), void* context);
} plugrad_native;

static_assert(offsetof(plugrad_native, handle) == 8 && offsetof(plugrad_native, wait) == 16, "layout");
static_assert(offsetof(plugrad_native, signal) == 24 && offsetof(plugrad_native, notify) == 32, "layout");
static_assert(sizeof(plugrad_native) == 40, "layout");

#ifdef __cplusplus
}
#endif
