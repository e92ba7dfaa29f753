// Devices of sim, called through the C table as the core calls them. The functions return the plugin's statuses to the test.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sim.hpp>

#include <map>
#include <string>
#include <vector>

namespace plugrad::test {

struct RawStream {
  plugrad_stream* handle = nullptr;
  uint64_t number = 0;  // the number of the last accepted op
};

using RawOptions = std::vector<std::pair<std::string, std::string>>;

class RawDevice {
 public:
  explicit RawDevice(uint32_t index = 0, const RawOptions& options = {});

  static const plugrad_backend& table();
  static const plugrad_sim& sim();
  static std::string last_report();  // the report of this thread, which the call clears
  // Opens a device, discards it and returns the status of open.
  static plugrad_status try_open(uint32_t index, const RawOptions& options);

  plugrad_device* handle() const { return handle_; }
  const plugrad_device_info& info() const { return info_; }
  RawStream stream(uint32_t role = PLUGRAD_COMPUTE_STREAM) const;
  plugrad_buffer* alloc(uint64_t bytes) const;

  const plugrad_kernel* kernel(uint32_t opcode, std::vector<uint8_t> dtypes, uint16_t layout, uint32_t outputs = 1) const;
  // The operands are f32, dense, of kCount elements. A null input is an immediate of `value`.
  plugrad_status run(RawStream& on, uint32_t opcode, plugrad_buffer* out, std::vector<plugrad_buffer*> inputs,
                     double value = 0) const;
  plugrad_status fill(RawStream& on, plugrad_buffer* out, double value) const {
    return run(on, PLUGRAD_OP_FILL, out, {nullptr}, value);
  }
  plugrad_status add(RawStream& on, plugrad_buffer* out, plugrad_buffer* a, plugrad_buffer* b) const {
    return run(on, PLUGRAD_OP_ADD, out, {a, b});
  }

  plugrad_place place(plugrad_buffer* buffer) const { return {sizeof(plugrad_place), PLUGRAD_DEVICE, handle_, buffer, 0}; }
  plugrad_place pinned(void* address) const {
    return {sizeof(plugrad_place), PLUGRAD_PINNED, handle_, static_cast<plugrad_buffer*>(address), 0};
  }
  static plugrad_place host(void* address) {
    return {sizeof(plugrad_place), PLUGRAD_HOST, nullptr, static_cast<plugrad_buffer*>(address), 0};
  }
  static plugrad_status copy(RawStream& on, const plugrad_place& to, const plugrad_place& from, uint64_t bytes);
  // Copies the buffer to host memory; returns the common value of all elements, or NaN if they differ.
  float read(RawStream& on, plugrad_buffer* buffer) const;

  static constexpr int64_t kCount = 1024;
  static constexpr uint64_t kBytes = kCount * sizeof(float);

 private:
  plugrad_device* handle_ = nullptr;
  plugrad_device_info info_{};
};

// Makes `on` wait for op `number` of `other`.
plugrad_status wait(RawStream& on, const RawStream& other, uint64_t number);
// Polls until op `number` is no longer in flight; returns the last status of completed.
plugrad_status complete(const RawStream& stream, uint64_t number);

}  // namespace plugrad::test
