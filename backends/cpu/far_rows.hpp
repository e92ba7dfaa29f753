// Rows of exact ops for outputs larger than the caches: the machine code reads ahead, and its stores bypass the caches.
#pragma once
#include <backends/cpu/elementwise.hpp>

namespace plugrad::cpu {

// A row of an op on `inputs` operands of the output's dtype, or null if there is no code. The output must be aligned to 64
// bytes. singles: bit i: input i is one element for the row.
RowFunction far_row(uint32_t opcode, uint8_t dtype, int inputs, unsigned singles, int vector_bytes);

// Returns how wide the machine code of the call's device is, in bytes; 0: it has no machine code.
int vector_bytes_of(const Call& call);

}  // namespace plugrad::cpu
