// Infinity by a short name, which many functions compare with.
#pragma once
#include <limits>

namespace plugrad {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace plugrad
