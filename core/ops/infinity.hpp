// Infinity by a short name, for many functions' comparisons.
#pragma once
#include <limits>

namespace plugrad {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace plugrad
