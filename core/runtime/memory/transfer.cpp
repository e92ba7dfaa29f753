#include <core/runtime/memory/transfer.hpp>

#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/local.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

namespace plugrad::transfer {
namespace {
constexpr uint64_t kChunk = 16 << 20;

plugrad_place at(Storage& x, uint64_t offset) {
  return {sizeof(plugrad_place), PLUGRAD_DEVICE, x.device->handle, x.buffer, x.offset + offset};
}
plugrad_place at(const void* host, uint32_t kind, const DeviceState& device, uint64_t offset = 0) {
  const bool named = kind == PLUGRAD_PINNED || !device.compute;
  return {sizeof(plugrad_place), kind, named ? device.handle : nullptr,
          static_cast<plugrad_buffer*>(const_cast<void*>(host)), offset};
}
char* address(Storage& x, uint64_t offset) { return reinterpret_cast<char*>(x.buffer) + x.offset + offset; }

bool covers(const Storage& x, uint64_t offset, uint64_t bytes) { return offset == 0 && bytes >= x.size; }

// Submits a copy to a device's copy stream or, without streams, copies at once. Returns OK or UNSUPPORTED; throws the rest.
plugrad_status copy(DeviceState& device, const char* what, const plugrad_place& to, const plugrad_place& from,
                    uint64_t bytes, Storage* written, Storage* read, bool whole, uint64_t* number_out = nullptr) {
  plugrad_copy c{sizeof c, 0, 0, bytes, to, from};
  plugrad_status status;
  if (device.compute) {
    const streams::Uses uses{std::span(&written, written ? 1 : 0), std::span(&read, read ? 1 : 0), whole ? ~0u : 0u};
    status = streams::submit(*device.copies, what, uses, [&](uint64_t number) {
      c.number = number;
      const plugrad_status answer = contained(device.table.copy, device.copies->handle, &c);
      if (number_out && answer == PLUGRAD_OK) *number_out = number;
      return answer;
    });
  } else {
    status = contained(device.table.copy, nullptr, &c);
  }
  if (status && status != PLUGRAD_UNSUPPORTED) throw_status(status, std::string(what) + " on " + device.name, take_report());
  return status;
}

void require_supported(plugrad_status status, const DeviceState& device, const char* what) {
  if (status) throw_status(status, std::string(what) + " on " + device.name, take_report());
}

void refuse_upload(Storage& to) {
  if (observe::keeps_upload(to)) return;
  observe::unrepeatable("copies data of the host to a device",
                        "make the tensor outside and capture it, or pass it as an argument");
}
void refuse_download() {
  observe::unrepeatable("reads the elements of a tensor (as item, to_vector and printing do)",
                        "return the tensor and read it afterwards");
}

bool by_hand(const DeviceState& device) { return !device.table.copy; }  // HOST_MEM without streams
}  // namespace

void upload(Storage& to, uint64_t offset, const void* from, uint64_t bytes) {
  stand_ins::require_memory(to, "a copy from the host");
  stand_ins::note_made(to);
  DeviceState& device = *to.device;
  device.require_open();
  if (!bytes) return;
  refuse_upload(to);
  ++device.uploads;
  observe::copying_to(to);
  observe::Event scope(EventKind::copy, "upload", &device, bytes);
  if (by_hand(device)) std::memcpy(address(to, offset), from, bytes);
  else
    require_supported(copy(device, "upload", at(to, offset), at(from, PLUGRAD_HOST, device), bytes, &to, nullptr,
                           covers(to, offset, bytes)),
                      device, "upload");
  scope.complete(device.copies);
}

void download(void* to, Storage& from, uint64_t offset, uint64_t bytes) {
  if (bytes) refuse_download();
  Storage& memory = stand_ins::readable(from, offset);
  peek(to, memory, offset, bytes);
}

void peek(void* to, Storage& from, uint64_t offset, uint64_t bytes) {
  DeviceState& device = *from.device;
  if (!bytes) return;
  ++device.downloads;
  observe::Event scope(EventKind::copy, "download", &device, bytes);
  if (by_hand(device)) {
    std::memcpy(to, address(from, offset), bytes);
    return;
  }
  require_supported(copy(device, "download", at(to, PLUGRAD_HOST, device), at(from, offset), bytes, nullptr, &from, true),
                    device, "download");
  if (!device.compute) return;
  const observe::Event waiting(EventKind::wait, "wait for data", &device);
  streams::verify(from);
  scope.complete(device.copies);
}

void between(Storage& to, uint64_t to_offset, Storage& from, uint64_t from_offset, uint64_t bytes) {
  for (const Storage* each : {&to, &from}) stand_ins::require_memory(*each, "a copy to another device");
  DeviceState& target = *to.device;
  target.require_open();
  if (!bytes) return;
  observe::unrepeatable("copies a tensor to another device", "do that outside, and pass the copy as an argument");
  observe::copying_to(to);
  observe::Event scope(EventKind::copy, "copy", &target, bytes);
  const bool whole = covers(to, to_offset, bytes);
  if (target.same_plugin(*from.device) && target.table.copy)
    if (copy(target, "copy", at(to, to_offset), at(from, from_offset), bytes, &to, &from, whole) == PLUGRAD_OK)
      return scope.complete(target.copies);
  if (by_hand(target) && by_hand(*from.device)) {
    std::memcpy(address(to, to_offset), address(from, from_offset), bytes);
    return;
  }
  const uint64_t chunk = std::min(kChunk, bytes);
  const std::unique_ptr<char[]> staging(new char[chunk]);
  for (uint64_t done = 0; done < bytes; done += chunk) {
    const uint64_t part = std::min(chunk, bytes - done);
    download(staging.get(), from, from_offset + done, part);
    upload(to, to_offset + done, staging.get(), part);
  }
  scope.complete(target.copies);
}

Pinned pin(DeviceState& device, uint64_t bytes) {
  device.require_open();
  void* address = nullptr;
  if (device.table.pin) {
    const std::lock_guard lock(device.allocator.mutex());
    device.check(contained(device.table.pin, device.handle, bytes, &address), "pin");
    if (!address) throw_breach(device.name, "pin returned OK and no address");
  } else if (!(address = std::malloc(bytes))) {
    throw Error(Code::out_of_memory, "[pin] out of host memory: " + std::to_string(bytes) + " bytes wanted");
  }
  return {static_cast<char*>(address), &device, bytes};
}

void unpin(Pinned& p) noexcept {
  if (!p.bytes) return;
  if (!p.device->table.pin) std::free(p.bytes);
  else if (p.device->table.unpin && !streams::closed()) {
    const std::lock_guard lock(p.device->allocator.mutex());
    contained_quietly(p.device->name, "unpin", p.device->table.unpin, p.device->handle, static_cast<void*>(p.bytes));
  }
  p.bytes = nullptr;
}

namespace {
// Waits for copies by other streams than this one, which orders its own.
void settle_for(Pinned& p, const StreamState& stream) {
  const auto is_other = [&](const StreamState* each) { return each && each != &stream; };
  if (is_other(p.writer) || is_other(p.reader)) settle(p);
}
}  // namespace

void upload(Storage& to, uint64_t offset, Pinned& from, uint64_t bytes, uint64_t place) {
  stand_ins::require_memory(to, "a copy from the host");
  DeviceState& device = *to.device;
  if (!device.table.pin || !device.compute) return upload(to, offset, from.bytes + place, bytes);
  device.require_open();
  if (!bytes) return;
  refuse_upload(to);
  ++device.uploads;
  observe::copying_to(to);
  observe::Event scope(EventKind::copy, "upload", &device, bytes);
  settle_for(from, *device.copies);
  require_supported(copy(device, "upload", at(to, offset), at(from.bytes, PLUGRAD_PINNED, *from.device, place), bytes, &to,
                         nullptr, covers(to, offset, bytes), &from.read),
                    device, "upload");
  from.reader = device.copies;
  scope.complete(device.copies);
}

void download(Pinned& to, Storage& from, uint64_t offset, uint64_t bytes, uint64_t place) {
  stand_ins::require_memory(from, "an asynchronous copy to the host");
  DeviceState& device = *from.device;
  if (!device.table.pin || !device.compute) return download(to.bytes + place, from, offset, bytes);
  if (!bytes) return;
  refuse_download();
  ++device.downloads;
  observe::Event scope(EventKind::copy, "download", &device, bytes);
  settle_for(to, *device.copies);
  require_supported(copy(device, "download", at(to.bytes, PLUGRAD_PINNED, *to.device, place), at(from, offset), bytes,
                         nullptr, &from, true, &to.written),
                    device, "download");
  to.writer = device.copies;
  scope.complete(device.copies);
}

void settle(Pinned& p) {
  const observe::Event waiting(EventKind::wait, "wait for data", p.device);
  if (StreamState* const reader = std::exchange(p.reader, nullptr))
    while (streams::poll(*reader) < p.read) std::this_thread::yield();
  if (StreamState* const writer = std::exchange(p.writer, nullptr)) streams::verify(*writer, p.written);
}

}  // namespace plugrad::transfer
