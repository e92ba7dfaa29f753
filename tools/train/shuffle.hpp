// The order in which an epoch goes through the samples.
#pragma once
#include <cstdint>
#include <vector>

namespace plugrad::training {

// A permutation of 0 .. count - 1 that follows from seed and epoch alone: to resume, nothing of it needs to be kept.
std::vector<int64_t> shuffled_rows(int64_t count, uint64_t seed, int64_t epoch);

}  // namespace plugrad::training
