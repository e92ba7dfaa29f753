// Devices of sim driven through the C table alone, as the core drives them; what they answer, tests see as it is.
#pragma once
#include <plugrad/sdk/abi.h>
#include <plugrad/sim.hpp>

#include <map>
#include <string>
#include <vector>

namespace plugrad::test {

struct RawStream {
  plugrad_stream* handle = nullptr;
  uint64_t number = 0;  // the last one that was accepted
};

using RawOptions = std::vector<std::pair<std::string, std::string>>;

class RawDevice {
 public:
  explicit RawDevice(uint32_t index = 0, const RawOptions& options = {});

  static const plugrad_backend& table();
  static const plugrad_sim& sim();
  static std::string last_report();  // on this thread; and forgets it
  // Opens and forgets; what open answered.
  static plugrad_status try_open(uint32_t index, const RawOptions& options);

  plugrad_device* handle() const { return handle_; }
  const plugrad_device_info& info() const { return info_; }
  RawStream stream(uint32_t role = PLUGRAD_COMPUTE_STREAM) const;
  plugrad_buffer* alloc(uint64_t bytes) const;

  const plugrad_kernel* kernel(uint32_t opcode, std::vector<uint8_t> dtypes, uint16_t layout, uint32_t outputs = 1) const;
  // f32, dense, `count` elements each; a null input is an immediate of `value`.
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
  // What the first element holds, by way of plain host memory; all others hold the same, else NaN.
  float read(RawStream& on, plugrad_buffer* buffer) const;

  static constexpr int64_t kCount = 1024;
  static constexpr uint64_t kBytes = kCount * sizeof(float);

 private:
  plugrad_device* handle_ = nullptr;
  plugrad_device_info info_{};
};

// Adds a wait of `on` for what was submitted to `other`.
plugrad_status wait(RawStream& on, const RawStream& other, uint64_t number);
// Asks until number is out of flight; what completed answered last.
plugrad_status complete(const RawStream& stream, uint64_t number);

}  // namespace plugrad::test
