// Elementwise ops in any layout: an op provides functions for contiguous rows, and run_elementwise walks the operands.
#pragma once
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

inline constexpr int kMaxRowOperands = 5;

// Computes n elements: operands[k] points to the first element of operand k, outputs first. Each operand is contiguous, or
// one element for the whole row if the function is for this case.
using RowFunction = void (*)(char* const* operands, int64_t n, const void* arguments);

struct Elementwise {
  uint8_t outputs, inputs;         // operands of a row; the op's further inputs are in its arguments
  uint8_t reads_outputs;           // whether outputs are in-out
  uint8_t weight;                  // the work for an element, in additions
  uint8_t sizes[kMaxRowOperands];  // bytes of an element of each operand
  RowFunction rows[8];             // bit i of the index: input i is one element for the row; null: not supported
};

// Returns the row with its kind in `own`. Fusions run the row by its kind.
constexpr KernelRow of_kind(KernelRow row, const Elementwise& kind) {
  row.own = &kind;
  return row;
}

// Runs the op over all elements of the call's first output.
void run_elementwise(const Elementwise& kind, const Call& call, const void* arguments = nullptr);

// The number of elements of weight 1 worth a task; also the most elements that a kernel computes directly, without
// run_elementwise.
inline constexpr int64_t kGrain = 16384;

}  // namespace plugrad::cpu
