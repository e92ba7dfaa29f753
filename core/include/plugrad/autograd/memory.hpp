// Who holds the memory of a device.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {

// Switches on or off that all threads record where memory comes from, for memory_snapshot. Forgets what was recorded before.
// While it is on, each op costs about a microsecond more; otherwise it costs nothing. where: called on the thread of an op
// that makes new memory, for example to name a line of the program; it may be empty.
PLUGRAD_API void record_memory(bool on = true, std::function<std::string()> where = {});
PLUGRAD_API bool records_memory();

enum class MemoryKind : uint8_t {
  parameter,   // a leaf that somebody asked to have a gradient
  gradient,    // of a leaf, or of a result that retains it
  saved,       // what recorded ops keep for their gradients
  other,       // other tensors, such as inputs, results and the state of optimisers
  unrecorded,  // memory that no op used since the recording began, or small blocks that threads keep for reuse
};
// "parameter"
PLUGRAD_API const char* memory_kind_name(MemoryKind kind);

// One piece of memory in use. Several tensors may share it.
struct MemoryEntry {
  MemoryKind kind = MemoryKind::other;
  uint64_t bytes = 0;    // with the rounding of the allocator
  std::string name;      // of those given, "0.weight"; its gradient is "0.weight.grad"
  std::string saved_by;  // the ops that keep it for their gradients: "mul, relu"
  std::string op;        // that wrote it first, such as "matmul"; empty if ops only read or updated it: it is older
  std::string gradient;  // the op whose gradient needed it; empty if it was made outside of a backward pass
  std::string range;     // the innermost ProfileRange around that op
  std::string where;     // what the function given to record_memory returned
  std::string dtype;     // of the first tensor seen on it: "f32"; empty if none was
  Shape shape;           // of that tensor
};

struct PLUGRAD_API MemorySnapshot {
  Device device;
  uint64_t total = 0;                // Device::memory().active, and the sum of the entries
  std::vector<MemoryEntry> entries;  // the largest first
  // The sums of each kind, and then `rows` entries, with equal ones on one line, as aligned text.
  std::string table(size_t rows = 20) const;
};

// What a device's memory in use consists of. names: tensors whose names the entries shall have, such as
// Module::named_parameters(). Requires that no other thread records ops or computes gradients meanwhile. Throws Error
// (invalid) unless record_memory is on.
PLUGRAD_API MemorySnapshot memory_snapshot(Device device, const std::vector<std::pair<std::string, Tensor>>& names = {});

}  // namespace plugrad
