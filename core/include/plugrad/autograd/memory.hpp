// Lists the holders of a device's memory.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {

// Switches the recording of memory's origins on or off, in all threads, for memory_snapshot. Forgets earlier records. While
// it is on, each op costs about a microsecond more; otherwise it costs nothing. where: called on the thread of an op when
// the op allocates memory, for example to name a line of the program; it may be empty.
PLUGRAD_API void record_memory(bool on = true, std::function<std::string()> where = {});
PLUGRAD_API bool records_memory();

enum class MemoryKind : uint8_t {
  parameter,   // a leaf with a requested gradient
  gradient,    // of a leaf, or retained by a result
  saved,       // kept by recorded ops for their gradients
  other,       // all other tensors, such as inputs, results and the state of optimisers
  unrecorded,  // memory not used by ops since the recording began, or small blocks kept by threads for reuse
};
// "parameter"
PLUGRAD_API const char* memory_kind_name(MemoryKind kind);

// One piece of memory in use. Several tensors may share it.
struct MemoryEntry {
  MemoryKind kind = MemoryKind::other;
  uint64_t bytes = 0;    // with the rounding of the allocator
  std::string name;      // from the given names: "0.weight", and "0.weight.grad" for its gradient
  std::string saved_by;  // ops that keep it for their gradients: "mul, relu"
  std::string op;        // the first op to write it, such as "matmul"; empty if ops only read or updated it: it is older
  std::string gradient;  // the op whose gradient allocated it; empty outside a backward pass
  std::string range;     // the innermost ProfileRange around `op`
  std::string where;     // the result of the function given to record_memory
  std::string dtype;     // of the first tensor seen on it: "f32"; empty without a tensor
  Shape shape;           // of the same tensor
};

struct PLUGRAD_API MemorySnapshot {
  Device device;
  uint64_t total = 0;                // Device::memory().active, and the sum of the entries
  std::vector<MemoryEntry> entries;  // the largest first
  // The sums of each kind, and then `rows` entries, with equal entries on the same line, as aligned text.
  std::string table(size_t rows = 20) const;
};

// Returns the contents of a device's memory in use. names: tensors and their names for the entries, such as
// Module::named_parameters(). Requires that no other thread records ops or computes gradients meanwhile. Throws Error
// (invalid) unless record_memory is on.
PLUGRAD_API MemorySnapshot memory_snapshot(Device device, const std::vector<std::pair<std::string, Tensor>>& names = {});

}  // namespace plugrad
