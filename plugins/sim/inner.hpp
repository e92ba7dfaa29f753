// The computing device inside sim: the reference backend, called through its C table as any host does.
#pragma once
#include <plugrad/sdk/fusion.h>

namespace plugrad::sim {

// Returns the inner device's kernel for a signature, or null. All devices share a single inner device. It has no state
// except its kernels. Throws BackendError if it cannot be opened.
const plugrad_kernel* inner_kernel(const plugrad_signature& signature);
// Returns the inner device's kernel for a fusion, or null.
const plugrad_kernel* inner_fusion(const plugrad_fusion& fusion);

// Returns the last message of the inner device on this thread.
const char* inner_message();

}  // namespace plugrad::sim
