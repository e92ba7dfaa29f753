// Two interleaving half circles: a small data set, not separable by a straight line.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::io {

struct Moons {
  std::vector<float> points;    // the pairs (x, y) of all points
  std::vector<int64_t> labels;  // 0: the upper moon, 1: the lower
};

// Returns `count` points, alternately on the two moons, each moved by normal noise of this standard deviation. The same seed
// gives the same points. Throws Error (invalid) for a negative count or noise.
PLUGRAD_API Moons make_moons(int64_t count, double noise, uint64_t seed);

}  // namespace plugrad::io
