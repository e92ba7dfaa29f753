// Forms of operands: see plugrad/sdk/forms.h.
#pragma once
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

// The form of input 1 of an op, such as packed weights.
struct FormRows {
  KernelRow maker, reader;
  bool (*pays)(const Call& call);
  uint64_t (*bytes)(const Call& call);
};

}  // namespace plugrad::cpu
