// The kernel rows of this backend, compiled once for each instruction set; the device picks one set when it is opened, so a
// call goes straight to its code. A target is one of Highway's numbers (HWY_AVX2, ...).
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::cpu {

using RowList = std::vector<KernelRow>;

template <int64_t target> void append_arithmetic(RowList& rows);
template <int64_t target> void append_functions(RowList& rows);
template <int64_t target> void append_comparisons(RowList& rows);
template <int64_t target> void append_casts(RowList& rows);
template <int64_t target> void append_backward(RowList& rows);
template <int64_t target> void append_updates(RowList& rows);
template <int64_t target> void append_reductions(RowList& rows);
template <int64_t target> void append_softmax(RowList& rows);
template <int64_t target> void append_softmax_backward(RowList& rows);
template <int64_t target> void append_random(RowList& rows);
template <int64_t target> void append_matmul(RowList& rows);
void append_indexing(RowList& rows);  // moves memory: nothing to gain from wider vectors

// A row with a run function of its own: one that answers small calls before it enters the SDK's guarded one.
inline KernelRow row(uint32_t opcode, uint8_t dtype, RunFunction run) {
  KernelRow made{opcode, kPlainFlags, PLUGRAD_ALL_LAYOUTS, 0, {}, run, nullptr};
  for (const char* letter = op_info(opcode)->operands; *letter; ++letter)
    made.dtypes[made.operands++] = operand_dtype(*letter, dtype);
  return made;
}

}  // namespace plugrad::cpu
