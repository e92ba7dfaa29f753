// The CPU backend: every op of the table in host memory, threaded, with the vector instructions of the machine it runs on.
#pragma once
#include <plugrad/sdk/abi.h>

// Returns the backend's function table, for programs that link it; the plugin returns the same table. Does not keep host.
extern "C" const plugrad_backend* plugrad_cpu_backend(const plugrad_host* host);
