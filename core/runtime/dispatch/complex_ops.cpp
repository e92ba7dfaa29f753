#include <core/runtime/dispatch/complex_ops.hpp>

namespace plugrad {

constinit RunOnParts run_on_parts = [](const OpCall&) { return false; };

}  // namespace plugrad
