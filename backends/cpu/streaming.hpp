// Outputs that are larger than the caches: their stores bypass them, which saves reading each line before it is written.
#pragma once
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

inline constexpr int64_t kStreamedBytes = int64_t{16} << 20;

// Whether stores to this output should bypass the caches.
inline bool is_streamed(const plugrad_view& out) {
  return out.count * static_cast<int64_t>(element_size(out.dtype)) >= kStreamedBytes;
}

}  // namespace plugrad::cpu
