// A device of a loaded plugin.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {

class DeviceState;

// Bytes of device memory that the core took, also for the workspaces of kernels; what a plugin takes for itself is not
// counted. Blocks above 4 KB count in multiples of 4 KB, smaller ones as the power of two that they are.
struct MemoryStats {
  uint64_t active = 0;        // held by tensors and workspaces; small blocks that other threads keep for reuse count as held
  uint64_t cached = 0;        // free, kept for reuse
  uint64_t peak = 0;          // the most that was active at once, with small blocks counted by their chunks
  uint64_t reserved = 0;      // taken from the device: active and cached
  uint64_t small = 0;         // of reserved: chunks of up to 64 KB for blocks up to 4 KB, which are never given back
  uint64_t segments = 0;      // number of buffers that make up reserved
  uint64_t largest_free = 0;  // the largest free block: far below cached where memory is fragmented
};

// What passed through a device since it was opened.
struct DeviceCounters {
  uint64_t kernels;         // calls of the plugin's kernels, copies of operands and decompositions included
  uint64_t layout_copies;   // of these: dense copies for kernels that do not take an operand's layout
  uint64_t decompositions;  // ops that the plugin lacks, done by other ops
  uint64_t bounces;         // ops done by a host-memory backend instead (see PLUGRAD_FALLBACK)
  uint64_t uploads, downloads;
};

using OptionList = std::vector<std::pair<std::string, std::string>>;

// A handle: as cheap as a pointer, for ever valid, equal if it is the same device. Safe from any thread.
class PLUGRAD_API Device {
 public:
  Device() = default;  // names no device
  // Finds a device by name: "cpu", "cuda:1". Without a number: 0. Opens it on first use. Throws Error (invalid) for a
  // name that no plugin brings; the message lists the devices there are, and where plugins were looked for.
  Device(const std::string& name);
  Device(const char* name) : Device(std::string(name)) {}
  explicit Device(DeviceState* state) : state_(state) {}

  bool defined() const { return state_; }
  const std::string& name() const;         // "cpu:0"
  const std::string& description() const;  // "AMD EPYC, 2 threads"
  const std::string& identity() const;     // UUID or PCI address; may be empty
  const std::string& plugin() const;       // the file it came from, or "linked in"
  uint32_t capabilities() const;           // PLUGRAD_HOST_MEM, ...
  uint64_t alignment() const;              // bytes
  int32_t dlpack_type() const;

  // Waits for all that was submitted; throws what failed on the way.
  void sync() const;
  // Gives the cached segments that nobody uses back to the device; returns their bytes.
  uint64_t trim() const;
  // Refuses new work from now on; live tensors stay valid and can be read.
  void detach() const;

  MemoryStats memory() const;
  void reset_peak() const;
  // Bytes free and installed as the device itself counts; both 0 where it does not say.
  std::pair<uint64_t, uint64_t> physical_memory() const;
  DeviceCounters counters() const;

  DeviceState& state() const { return *state_; }
  friend bool operator==(const Device&, const Device&) = default;

 private:
  DeviceState* state_ = nullptr;
};

// The device that factories use where none is given: the one set, else that of the plugin which offers itself as default
// (of ours, cpu). Process-wide. Throws Error (invalid) where there is none.
PLUGRAD_API Device default_device();
PLUGRAD_API void set_default_device(Device device);

}  // namespace plugrad
