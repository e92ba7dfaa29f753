#include <core/runtime/streams/native.hpp>

#include <core/runtime/local.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace plugrad::native {
namespace {

const plugrad_native& require(const DeviceState& device) {
  if (device.native) return *device.native;
  throw Error(Code::unsupported, "[dlpack] " + device.name +
                                     " cannot wait for another library's stream, because its plugin has no '" +
                                     PLUGRAD_NATIVE "': wait for the other library first, then import without an order");
}

// Submits a call as an op of the device's compute stream.
template <class Submit> void submit(DeviceState& device, const streams::Uses& uses, Submit call) {
  const plugrad_status status = streams::submit(*device.compute, "dlpack", uses, std::move(call));
  if (status) throw_status(status, "dlpack on " + device.name, take_report());
}

void* handle_of(const DeviceState& device, plugrad_stream* stream) {
  void* native = nullptr;
  device.check(contained(require(device).handle, stream, &native), "native handle of a stream");
  return native;
}

}  // namespace

const plugrad_native* find(const plugrad_backend& table, const std::string& device_name) {
  const void* found = extension_of(table, PLUGRAD_NATIVE);
  const auto* native = static_cast<const plugrad_native*>(found);
  if (!native) return nullptr;
  if (native->struct_size < sizeof(plugrad_native) || !native->handle || !native->wait || !native->signal || !native->notify)
    throw Error(Code::invalid,
                "[" + device_name + "] its plugin breaks the contract: a function of '" PLUGRAD_NATIVE "' is missing");
  return native;
}

void* handle(const DeviceState& device) { return handle_of(device, device.compute->handle); }

void* side_stream(DeviceState& device) {
  const std::lock_guard lock(device.allocator.mutex());
  if (!device.side)
    device.check(contained(device.table.stream_create, device.handle, PLUGRAD_COMPUTE_STREAM, &device.side),
                 "stream_create");
  return handle_of(device, device.side);
}

void acquire(Storage& storage, void* from) {
  DeviceState& device = *storage.device;
  const plugrad_native& native = require(device);
  Storage* const written = &storage;
  submit(device, {std::span(&written, 1), {}, ~0u},
         [&](uint64_t number) { return contained(native.wait, device.compute->handle, number, from); });
}

void release(Storage& storage, void* to) {
  DeviceState& device = *storage.device;
  if (!device.native) {
    streams::sync(*device.compute);
    return streams::sync(*device.copies);
  }
  Storage* const read = &storage;
  submit(device, {{}, std::span(&read, 1), 0, true},
         [&](uint64_t number) { return contained(device.native->signal, device.compute->handle, number, to); });
}

// Both sides own the flag: the callback may still be in notify_one when the waiting thread has seen the value.
bool await(StreamState& stream, uint64_t number) {
  using Flag = std::shared_ptr<std::atomic<bool>>;
  if (!stream.device->native) return false;
  const Flag over = std::make_shared<std::atomic<bool>>(false);
  auto kept = std::make_unique<Flag>(over);
  const auto tell = [](void* context) noexcept {
    const std::unique_ptr<Flag> flag(static_cast<Flag*>(context));
    (*flag)->store(true);
    (*flag)->notify_one();
  };
  if (contained(stream.device->native->notify, stream.handle, number, +tell, static_cast<void*>(kept.get())) != PLUGRAD_OK) {
    take_report();
    return false;
  }
  (void)kept.release();  // now owned by the callback
  over->wait(false);
  return true;
}

}  // namespace plugrad::native
