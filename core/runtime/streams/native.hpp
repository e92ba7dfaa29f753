// Orders work with the work of other libraries on the same device, by the extension of plugrad/sdk/native.h.
#pragma once
#include <plugrad/sdk/native.h>
#include <core/runtime/device_state.hpp>

namespace plugrad::native {

// Returns the extension of a plugin, or null. Throws Error (invalid) if the extension breaks the contract.
const plugrad_native* find(const plugrad_backend& table, const std::string& device_name);

// Returns the compute stream's native handle. Throws Error (unsupported) without the extension.
void* handle(const DeviceState& device);

// Returns the native handle of a stream for the work of another library, beside the device's own streams: one for each
// device, made when it is first needed. Throws Error (unsupported) without the extension.
void* side_stream(DeviceState& device);

// Later uses of storage wait for the work submitted to native stream `from` so far. The core records a write of storage, so
// that failures and waits between streams follow. Throws Error (unsupported) without the extension.
void acquire(Storage& storage, void* from);

// Work submitted to native stream `to` after this call waits for all uses of storage so far. Without the extension the host
// waits for the device instead.
void release(Storage& storage, void* to);

// Blocks until no op up to `number` is in flight on the stream. Returns false at once if the plugin cannot notify.
bool await(StreamState& stream, uint64_t number);

}  // namespace plugrad::native
