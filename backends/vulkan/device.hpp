// A logical device of Vulkan with its single queue.
#pragma once
#include <backends/vulkan/driver.hpp>

#include <atomic>
#include <mutex>
#include <string>

namespace plugrad::vulkan {

// How shaders compute; tests let them behave like devices missing on this machine.
struct Arithmetic {
  bool flushes = false;   // denormal numbers may be flushed
  bool corrected = true;  // division and square root need correction
  uint32_t emulated = 0;  // as EMULATED in common.glsl
};

class Device {
 public:
  // uses_matrix_units: products of f16 run on the candidate's units.
  Device(const Candidate& candidate, uint32_t emulated, bool uses_matrix_units);
  Device(const Device&) = delete;

  const Candidate& candidate() const { return candidate_; }
  VkDevice handle() const { return handle_; }
  const DeviceFunctions& functions() const { return functions_; }
  const Arithmetic& arithmetic() const { return arithmetic_; }
  const MatrixUnits& matrix_units() const { return matrix_units_; }  // rows is 0 if they are not used

  void submit(const VkSubmitInfo& info);

  // Throws if a call failed; a lost device stays lost.
  void check(VkResult result, const char* what) {
    if (result < VK_SUCCESS) [[unlikely]]
      fail(result, what);
  }
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  void demand() const {
    if (lost()) [[unlikely]]
      throw BackendError(PLUGRAD_DEVICE_LOST, "the Vulkan device is lost; a new process may use it again");
  }

 private:
  void create(void* features);
  [[noreturn]] void fail(VkResult result, const char* what);

  const Candidate& candidate_;
  Arithmetic arithmetic_;
  MatrixUnits matrix_units_;
  VkDevice handle_ = nullptr;
  VkQueue queue_ = nullptr;
  std::mutex queue_mutex_;
  DeviceFunctions functions_;
  std::atomic<bool> lost_{false};
};

// For tests: `replace` is called with the functions of each device opened later, and may replace them.
void on_functions(void (*replace)(DeviceFunctions&));

}  // namespace plugrad::vulkan
