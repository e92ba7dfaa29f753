// Two interleaving half circles: a small data set that no straight line separates.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::io {

struct Moons {
  std::vector<float> points;    // (x, y) of each, one after another
  std::vector<int64_t> labels;  // 0: the upper moon, 1: the lower
};

// Returns `count` points, alternately on the two moons, each moved by normal noise of that standard deviation. The same seed
// gives the same points. Throws Error (invalid) for a negative count or noise.
PLUGRAD_API Moons make_moons(int64_t count, double noise, uint64_t seed);

}  // namespace plugrad::io
