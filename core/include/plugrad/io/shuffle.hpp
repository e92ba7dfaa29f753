// The order of the samples in an epoch.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::io {

// Returns a permutation of 0 .. count - 1, from seed and epoch alone: resuming a run needs no saved state. Throws Error
// (invalid) for a negative count.
PLUGRAD_API std::vector<int64_t> shuffled_rows(int64_t count, uint64_t seed, int64_t epoch);

}  // namespace plugrad::io
