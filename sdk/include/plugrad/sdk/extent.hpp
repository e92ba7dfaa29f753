// The memory used by calls, and whether the calls may run in any order, or at once.
#pragma once
#include <plugrad/sdk/dtypes.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>

namespace plugrad {

// Bytes of a buffer, read or written by a user such as a call. Where buffers are addresses, as in host memory, buffer is
// null and the bytes are addresses: a buffer of the host may be a part of a larger buffer.
struct MemoryExtent {
  const void* buffer = nullptr;
  uint64_t begin = 0, end = 0;
  bool is_written = false;
  uint32_t user = 0;

  bool overlaps(const MemoryExtent& other) const { return buffer == other.buffer && begin < other.end && other.begin < end; }
  // Whether the order of the two accesses matters.
  bool conflicts_with(const MemoryExtent& other) const { return (is_written || other.is_written) && overlaps(other); }
};

// Returns the bytes from the first to the last element of a view, neither immediate nor empty. base: the address of the
// view's first element, or the element's offset in a buffer.
inline MemoryExtent extent_of(const plugrad_view& view, uint64_t base, bool is_written, uint32_t user) {
  const auto size = static_cast<int64_t>(element_size(view.dtype));
  int64_t low = 0, high = size;
  for (int d = 0; d < view.rank; ++d) (view.strides[d] < 0 ? low : high) += view.strides[d] * (view.shape[d] - 1) * size;
  return {nullptr, base + static_cast<uint64_t>(low), base + static_cast<uint64_t>(high), is_written, user};
}

namespace detail {
// The furthest end so far of a user, and of all remaining users.
class FurthestEnd {
 public:
  void add(const MemoryExtent& extent) {
    if (extent.user == user_) {
      end_ = std::max(end_, extent.end);
    } else if (extent.end > end_) {
      others_ = end_;
      end_ = extent.end;
      user_ = extent.user;
    } else {
      others_ = std::max(others_, extent.end);
    }
  }
  uint64_t of_others(uint32_t user) const { return user == user_ ? others_ : end_; }

 private:
  uint64_t end_ = 0, others_ = 0;
  uint32_t user_ = UINT32_MAX;
};
}  // namespace detail

// Whether no user writes bytes read or written by another user. Sorts the extents by buffer and begin.
inline bool are_independent(std::span<MemoryExtent> extents) {
  std::ranges::sort(extents, {}, [](const MemoryExtent& each) { return std::tuple(each.buffer, each.begin); });
  detail::FurthestEnd used, written;
  const void* buffer = nullptr;
  for (const MemoryExtent& each : extents) {
    if (each.buffer != buffer) used = written = {};
    buffer = each.buffer;
    const detail::FurthestEnd& kept = each.is_written ? used : written;
    if (each.begin < kept.of_others(each.user)) return false;
    used.add(each);
    if (each.is_written) written.add(each);
  }
  return true;
}

}  // namespace plugrad
