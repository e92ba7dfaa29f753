// An opened device: its table, kernels, memory and streams. It is never destroyed.
#pragma once
#include <plugrad/sdk/native.h>
#include <core/runtime/memory/allocator.hpp>
#include <core/runtime/streams/stream.hpp>
#include <plugrad/runtime/device.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace plugrad {

// The modes in a kernel's signature, and kObserved: a profiler or record_memory sees all ops, so no op takes the fast path.
constexpr uint32_t kKernelModes = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32, kObserved = 8;
inline constinit std::atomic<uint32_t> modes{0};
inline uint32_t kernel_modes() { return modes.load(std::memory_order_relaxed) & kKernelModes; }

// A cache of a device's kernels by opcode, dtype and layout class. CAST has two dtypes, so each source dtype has a row.
class KernelTable {
 public:
  static constexpr uint32_t kOpcodes = 256, kDTypes = 16, kLayouts = 64;
  static constexpr uint32_t kEntries = (kOpcodes + kDTypes) * kDTypes * kLayouts;
  using Entry = std::atomic<const plugrad_kernel*>;

  static constexpr size_t place(uint32_t slot, uint8_t key, uint16_t layout) {
    return (static_cast<size_t>(slot) * kDTypes + key) * kLayouts + layout;
  }
  static constexpr uint32_t slot(uint32_t opcode, uint8_t source) {
    return opcode == PLUGRAD_OP_CAST ? kOpcodes + source : opcode;
  }

  Entry direct[kEntries];  // kernels that need neither a stream nor a workspace
  Entry asked[kEntries];   // all results of resolve
};

// The seed of a generator, and the number of counters consumed.
struct Generator {
  std::atomic<uint64_t> seed{0}, offset{0};
};

class DeviceState {
 public:
  DeviceState(const plugrad_backend& negotiated, const plugrad_backend* source, std::string plugin, uint32_t index,
              uint32_t ordinal, const OptionList& options);
  DeviceState(const DeviceState&) = delete;

  // Returns the cached kernel that needs neither a stream nor a workspace, or null; always null if flags has kObserved.
  // key: the dtype of the op's key operand; slot: see KernelTable.
  const plugrad_kernel* direct(uint32_t slot, uint8_t key, uint16_t layout, uint32_t flags) const {
    return tables_[flags >> 1]
        .load(std::memory_order_relaxed)
        ->direct[KernelTable::place(slot, key, layout)]
        .load(std::memory_order_acquire);
  }
  // Returns any kernel, asking the device on the first call, or null if the device has no kernel for the op.
  const plugrad_kernel* kernel(const plugrad_op& op, uint8_t key, uint16_t layout);

  // Throws Error unless status is OK.
  void check(plugrad_status status, const char* function) const {
    if (status) [[unlikely]]
      fail(status, function);
  }
  // Throws Error if the device accepts no new work.
  void require_open() const;
  void detach();
  // Returns the kernel's request in bytes; UINT64_MAX if it lacks host memory. Throws Error (internal) for an absurd number.
  uint64_t workspace_bytes(const plugrad_kernel& kernel, const plugrad_op& op) const;
  bool host_memory() const { return info.capabilities & PLUGRAD_HOST_MEM; }
  bool same_plugin(const DeviceState& other) const { return source == other.source; }

  const plugrad_backend table;                          // of our size: fields beyond the plugin's size are null
  const plugrad_backend* const source;                  // the plugin's own
  const std::string plugin;                             // its file
  const uint32_t ordinal;                               // among all opened devices of the process
  const uint32_t small_lists = ordinal * kSizeClasses;  // the first of its lists of small blocks
  const std::string name;                               // "cpu:0"
  plugrad_device* handle = nullptr;
  plugrad_device_info info{};
  std::string description, identity;
  StreamState* compute = nullptr;  // null without ASYNC
  StreamState* copies = nullptr;
  const plugrad_native* native = nullptr;  // null without streams or without the extension
  plugrad_stream* side = nullptr;          // of native::side_stream; under the allocator's mutex
  Allocator allocator{*this};
  std::atomic<bool> lost{false}, detached{false};

  Generator generator;  // see generator_of()
  std::atomic<uint64_t> layout_copies{0}, widened{0}, decompositions{0}, host_fallbacks{0}, uploads{0}, downloads{0};

 private:
  [[noreturn]] void fail(plugrad_status status, const char* function) const;
  void open(uint32_t index, const OptionList& options);
  void call_open(uint32_t index, const plugrad_options& given);
  const plugrad_kernel* resolve(const plugrad_signature& question);

  KernelTable* new_table();
  std::span<std::atomic<KernelTable*>> unobserved_tables();

  struct Freer {
    void operator()(KernelTable* table) const { std::free(table); }
  };
  std::array<std::unique_ptr<KernelTable, Freer>, 8>
      made_tables_;  // four, and four more once detached: other threads may still read the first four
  std::atomic<uint32_t> tables_made_{0};
  std::array<std::atomic<KernelTable*>, 8> tables_;  // by modes / 2; the four with kObserved are one table, always empty
};

// Throws Error for a variable of the environment with an invalid value. This happens when a device opens rather than when
// the program first needs the value.
void check_environment();

// Keeps the handle of a plugin's device or stream reachable, even if the core refuses the handle; the ABI has no call to
// release it. The caller holds the registry's mutex.
void keep_reachable(void* handle);

}  // namespace plugrad
