// The device that computes inside sim: the reference backend, reached as any host reaches it, through its C table.
#pragma once
#include <plugrad/sdk/abi.h>

namespace plugrad::sim {

// Its kernel for a signature, or null. One inner device serves all: it keeps nothing but its kernels. Throws BackendError
// where it does not open.
const plugrad_kernel* inner_kernel(const plugrad_signature& signature);

// What the inner device reported last on this thread.
const char* inner_message();

}  // namespace plugrad::sim
