// A device of a loaded plugin.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {

class DeviceState;

// Bytes of device memory allocated by the core, workspaces of kernels included; a plugin's own allocations are not
// counted. Blocks above 4 KB count in multiples of 4 KB, smaller blocks in powers of two.
struct MemoryStats {
  uint64_t active = 0;        // held by tensors and workspaces, or small blocks cached by other threads
  uint64_t cached = 0;        // free and kept for reuse
  uint64_t peak = 0;          // the highest active since reset_peak, with small blocks counted by their chunks
  uint64_t reserved = 0;      // allocated from the device: active + cached
  uint64_t small = 0;         // part of reserved: chunks of up to 64 KB for blocks up to 4 KB, never released
  uint64_t segments = 0;      // the number of buffers in reserved
  uint64_t largest_free = 0;  // the largest free block; far below cached if memory is fragmented
};

// Counts of a device's work since it was opened.
struct DeviceCounters {
  uint64_t kernels;         // calls of the plugin's kernels, including calls for copies and decompositions
  uint64_t layout_copies;   // of these: dense copies for kernels without support for an operand's layout
  uint64_t widened;         // ops without a kernel for their dtype, computed in a wider dtype
  uint64_t decompositions;  // ops without a kernel, composed of other ops
  uint64_t host_fallbacks;  // ops run by a host-memory backend instead (see PLUGRAD_FALLBACK)
  uint64_t uploads, downloads;
};

using OptionList = std::vector<std::pair<std::string, std::string>>;

// A handle the size of a pointer, valid until the process ends; handles to the same device are equal. Safe from any thread.
class PLUGRAD_API Device {
 public:
  Device() = default;  // undefined
  // Finds a device by name: "cuda:1", or "cpu" for "cpu:0". Opens it on first use. Throws Error (invalid) for an unknown
  // name; the message lists the known devices and the searched directories.
  Device(const std::string& name);
  Device(const char* name) : Device(std::string(name)) {}
  explicit Device(DeviceState* state) : state_(state) {}

  bool defined() const { return state_; }
  const std::string& name() const;         // "cpu:0"
  const std::string& description() const;  // "AMD EPYC, 2 threads"
  const std::string& identity() const;     // UUID or PCI address; may be empty
  const std::string& plugin() const;       // its file, or "linked in"
  uint32_t capabilities() const;           // PLUGRAD_HOST_MEM, ...
  uint64_t alignment() const;              // bytes
  int32_t dlpack_type() const;

  // Waits for all submitted work; throws Error if any of it failed.
  void sync() const;
  // Returns unused cached segments to the device; returns their bytes.
  uint64_t trim() const;
  // Refuses all later work; live tensors stay valid and can be read.
  void detach() const;

  MemoryStats memory() const;
  void reset_peak() const;
  // The free and the installed bytes, as the device reports them; 0 where it reports nothing.
  std::pair<uint64_t, uint64_t> physical_memory() const;
  DeviceCounters counters() const;

  DeviceState& state() const { return *state_; }
  friend bool operator==(const Device&, const Device&) = default;

 private:
  DeviceState* state_ = nullptr;
};

// Waits for all submitted work of all devices; warns of failures that no call reported. The core does so itself when the
// process ends, but if a driver has loaded libraries of its own after the last op, their exit handlers run before. The
// command-line tool and the Python package call it as their last step.
PLUGRAD_API void finish_all() noexcept;

// The device that factories use by default: the device set by set_default_device, else the first device of a plugin that
// offers itself as default, such as cpu. Process-wide. Throws Error (invalid) if no such device exists.
PLUGRAD_API Device default_device();
PLUGRAD_API void set_default_device(Device device);

}  // namespace plugrad
