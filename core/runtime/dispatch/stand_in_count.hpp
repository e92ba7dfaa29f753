// Whether any storage stands for other memory: see stand_ins.hpp.
#pragma once
#include <atomic>
#include <cstdint>

namespace plugrad::stand_ins {

// The number of stand-ins and of living transforms in the process. While it is not 0, no op takes the fast path.
inline constinit std::atomic<uint64_t> count{0};
inline bool is_on() { return count.load(std::memory_order_relaxed) != 0; }

}  // namespace plugrad::stand_ins
