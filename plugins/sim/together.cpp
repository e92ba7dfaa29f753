// The extension of together.h. A run submits its ops one by one, and checks that they are independent.
#include <plugins/sim/device.hpp>
#include <plugrad/sdk/extent.hpp>

namespace plugrad::sim {

bool Sim::takes(const plugrad_kernel& kernel) const noexcept {
  const OpInfo* const info = static_cast<const SimKernel&>(kernel).info;
  return info && info->shape == OpShape::update;
}

void Sim::run_together(const plugrad_kernel& kernel, Stream& stream, std::span<const plugrad_op* const> ops) {
  std::vector<MemoryExtent> extents;
  std::vector<plugrad_sequence_call> calls;
  for (uint32_t at = 0; at < ops.size(); ++at) {
    const plugrad_op& op = *ops[at];
    if (op.number != ops[0]->number + at)
      throw BackendError(PLUGRAD_INVALID, "ops that are submitted together do not follow one another in their numbers");
    for (int k = 0; k < op.outputs + op.inputs; ++k) {
      if (is_immediate(*op.views[k])) continue;
      const Range range = checked_range(*op.views[k], kGranule);
      extents.push_back({op.views[k]->buffer, range.begin, range.end, k < op.outputs, at});
    }
    calls.push_back({&kernel, &op});
  }
  if (!are_independent(extents))
    throw BackendError(PLUGRAD_INVALID, "ops that are submitted together are not independent");
  submit_all(static_cast<SimStream&>(stream), calls, ops[0]->number, counters_.together);
}

}  // namespace plugrad::sim
