// Operands beyond the caches. Stores to outputs that are larger bypass them, which saves reading each line before it is
// written; of what is beyond the near ones, loops fetch lines ahead, those that they write, too.
#pragma once
#include <backends/cpu/operand.hpp>

namespace plugrad::cpu {

inline constexpr int64_t kStreamedBytes = int64_t{16} << 20;
inline constexpr int64_t kFarBytes = int64_t{1} << 20;  // beyond the near caches
inline constexpr int kReadAhead = 2048, kWriteAhead = 1024;  // bytes

// Whether stores to this output should bypass the caches.
inline bool is_streamed(const plugrad_view& out) {
  return out.count * static_cast<int64_t>(element_size(out.dtype)) >= kStreamedBytes;
}

}  // namespace plugrad::cpu
