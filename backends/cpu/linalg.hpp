// The extension of plugrad/sdk/linalg.h.
#pragma once
#include <plugrad/sdk/linalg.h>

namespace plugrad::cpu {

const plugrad_linalg& linear_algebra();

}  // namespace plugrad::cpu
