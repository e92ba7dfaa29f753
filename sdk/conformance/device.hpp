// An open device of the plugin under test. All calls go through the C table.
#pragma once
#include <sdk/conformance/host.hpp>

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::conformance {

// Keeps devices and streams, which are never closed, reachable for leak checkers.
void keep(void* handle);

using OptionList = std::vector<std::pair<std::string, std::string>>;

// A stream (null without ASYNC) and the number of its last accepted submission. One thread at a time.
struct Queue {
  plugrad_stream* stream = nullptr;
  uint64_t last = 0;
};

// Thread-safe where the contract allows it; device-serial calls take the device's lock. Never closed.
class Device {
 public:
  // Throws Breach if the device cannot be opened.
  Device(const plugrad_backend* table, const plugrad_host* host, uint32_t index, const OptionList& options);
  Device(const Device&) = delete;

  const plugrad_backend& table() const { return *table_; }
  plugrad_device* handle() const { return handle_; }
  const plugrad_device_info& info() const { return info_; }
  bool async() const { return info_.capabilities & PLUGRAD_ASYNC; }
  bool flushes_denormals() const { return info_.capabilities & PLUGRAD_FLUSHES_DENORMALS; }
  bool host_memory() const { return info_.capabilities & PLUGRAD_HOST_MEM; }

  // Allocates memory; throws NoRoom if there is too little, and Breach for another failure.
  plugrad_buffer* alloc(uint64_t bytes);
  void free(plugrad_buffer* buffer);

  Queue make_queue(uint32_t role = PLUGRAD_COMPUTE_STREAM);
  // Submits an op or a copy with the queue's next number. The number is used up only if the call returns OK.
  Outcome run(Queue& queue, const plugrad_kernel* kernel, plugrad_op op) const;
  Outcome copy(Queue& queue, plugrad_copy copy) const;
  // Waits for everything submitted. Without ASYNC it returns at once.
  Outcome sync(Queue& queue, plugrad_failure* failure = nullptr) const;

  plugrad_place place(plugrad_buffer* buffer, uint64_t offset) const;
  plugrad_place host_place(const void* address) const;
  // These throw Breach if the copy is refused. download waits until the bytes have arrived.
  void upload(Queue& queue, plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) const;
  void download(Queue& queue, void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) const;

 private:
  const plugrad_backend* table_;
  plugrad_device* handle_ = nullptr;
  plugrad_device_info info_{};
  std::mutex serial_;
};

plugrad_copy copy_of(const plugrad_place& to, const plugrad_place& from, uint64_t bytes);

// Owns memory of a device.
class Block {
 public:
  Block(Device& device, uint64_t bytes) : device_(device), buffer_(device.alloc(bytes)), bytes_(bytes) {}
  ~Block() { device_.free(buffer_); }
  Block(const Block&) = delete;
  plugrad_buffer* buffer() const { return buffer_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Device& device_;
  plugrad_buffer* buffer_;
  uint64_t bytes_;
};

}  // namespace plugrad::conformance
