// The CUDA backend, linked into a program instead of loaded from a file.
#pragma once
#include <plugrad/sdk/abi.h>

// Returns the same table as plugrad_backend_v0 of the plugin. [any]
extern "C" const plugrad_backend* plugrad_cuda_backend(const plugrad_host* host);
