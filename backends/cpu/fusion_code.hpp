// Machine code for runs of exact elementwise ops: a vector of each operand goes through all ops in registers, and only
// results read outside of the run are stored. Each op is the same IEEE operation as in the kernels of single ops.
#pragma once
#include <backends/cpu/elementwise.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace plugrad::cpu {

struct FusedOp {
  uint32_t opcode;
  std::vector<uint16_t> operands;  // values: the result, then the arguments
};

// Ops on one dtype. Results of comparisons are read by WHERE inside only.
struct FusedRun {
  bool is_double;
  std::vector<FusedOp> ops;
  std::vector<uint16_t> results, inputs;  // values: stored, and read
  std::vector<bool> is_single;            // by input: one element for the row
};

// Whether machine code can be made for the op in f32 and f64.
bool is_fusable(uint32_t opcode);

struct FusedCode {
  std::shared_ptr<void> memory;
  RowFunction function = nullptr;  // of the results, then the inputs; null: no code, for example for want of registers
};

// Operands beyond the near caches.
struct FarOperands {
  std::vector<bool> is_read_ahead;          // by input
  std::vector<bool> is_streamed;            // by result: it is aligned to 64 bytes, and stores bypass the caches
  std::vector<bool> is_written_ahead = {};  // by result: its lines are fetched before they are written
};

// vector_bytes: 64 with AVX-512, 32 with AVX2, 0 for neither.
FusedCode compile(const FusedRun& run, int vector_bytes, const FarOperands& far = {});

}  // namespace plugrad::cpu
