// The third fallback: runs an op on complex numbers by ops on their parts, if the device has no kernel for them.
#pragma once
#include <core/runtime/dispatch/dispatch.hpp>

namespace plugrad {

// Whether an operand of the op is complex.
inline bool is_on_complex(const OpCall& call) {
  for (int i = 0; i < call.operands(); ++i)
    if (is_complex(call.views[i]->dtype)) return true;
  return false;
}
// Returns false if the op has no meaning for complex numbers, or must be composed of simpler ops. Throws Error if a step
// fails. The ops on the parts are ops on tensors: the layer above sets the function while the library is loaded.
using RunOnParts = bool (*)(const OpCall& call);
extern RunOnParts run_on_parts;

}  // namespace plugrad
