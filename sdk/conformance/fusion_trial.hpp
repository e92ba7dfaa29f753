// Runs a fusion beside the device's own kernels for its single ops.
#pragma once
#include <sdk/conformance/fusion_problem.hpp>
#include <sdk/conformance/session.hpp>

namespace plugrad::conformance {

// Returns the plugin's functions for fusions, or null.
const plugrad_fusions* fusions_offered_by(const Session& session);

// Returns the device's kernel for a fusion, or null.
const plugrad_kernel* kernel_of(Session& session, const FusionProblem& problem, Tally& tally);

// Returns whether the kernel ran the fusion. Checks the bits of all results, and the memory around them.
bool runs_fusion(Session& session, Queue& queue, const FusionProblem& problem, const plugrad_kernel* kernel, Tally& tally);

}  // namespace plugrad::conformance
