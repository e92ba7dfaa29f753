// The Vulkan backend, for a plugin file, or for linking into a program.
#pragma once
#include <plugrad/sdk/abi.h>

extern "C" const plugrad_backend* plugrad_vulkan_backend(const plugrad_host* host);
