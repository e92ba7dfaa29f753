// Elementwise ops in any layout: an op says how it computes a contiguous row, and this walks the operands.
#pragma once
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

inline constexpr int kMaxRowOperands = 5;

// Computes n elements: operands[k] points to operand k's first one, outputs first; each is contiguous, or one element for
// the whole row where the row is for that.
using RowFunction = void (*)(char* const* operands, int64_t n, const void* arguments);

struct Elementwise {
  uint8_t outputs, inputs;         // operands of a row; an op's inputs beyond them are in its arguments
  uint8_t reads_outputs;           // whether outputs are in-out
  uint8_t weight;                  // how many times an addition's work an element is
  uint8_t sizes[kMaxRowOperands];  // bytes of an element of each operand
  RowFunction rows[8];             // by input: bit i of the index is set where input i is one element; null: there is none
};

// Runs the op over all elements of the call's first output.
void run_elementwise(const Elementwise& kind, const Call& call, const void* arguments = nullptr);

// Elements, of weight 1, that are worth a task of their own; also the most that kernels compute without asking anybody.
inline constexpr int64_t kGrain = 16384;

}  // namespace plugrad::cpu
