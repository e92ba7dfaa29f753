// Order with what other libraries submit to the same device, by the extension of plugrad/sdk/native.h.
#pragma once
#include <core/runtime/device_state.hpp>
#include <plugrad/sdk/native.h>

namespace plugrad::native {

// The extension of a plugin, or null. Throws Error (invalid) where it breaks the contract.
const plugrad_native* find(const plugrad_backend& table, const std::string& device_name);

// The compute stream's native handle. Throws Error (unsupported) where the plugin has no extension.
void* handle(const DeviceState& device);

// Uses of storage that are submitted after this call start after what native stream `from` was given before it. A write, for
// the core: failures and waits between streams follow from that. Throws Error (unsupported) without the extension.
void acquire(Storage& storage, void* from);

// What native stream `to` is given after this call starts after all uses of storage so far. Without the extension the host
// waits for the device.
void release(Storage& storage, void* to);

// Sleeps until nothing up to number is in flight on the stream. False: the plugin cannot tell.
bool await(StreamState& stream, uint64_t number);

}  // namespace plugrad::native
