// The reference backend, naive loops over host memory, for linking into programs, instead of its plugin.
#pragma once
#include <plugrad/sdk/abi.h>

// Returns its function table, the same on every call. [any]
extern "C" const plugrad_backend* plugrad_reference_backend(const plugrad_host* host);
