// The extension of plugrad/sdk/linalg.h.
#pragma once
#include <plugrad/sdk/linalg.h>

namespace plugrad::cpu {

// Null in a build without PLUGRAD_CPU_LINALG.
const plugrad_linalg* linear_algebra();

}  // namespace plugrad::cpu
