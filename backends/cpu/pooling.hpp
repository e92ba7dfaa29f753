// The windows of pooling, as their kernels see them.
#pragma once
#include <backends/cpu/operand.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace plugrad::cpu {

// The elements of an axis in a window: `count` elements (at least 1) from `first` on.
struct Span {
  int64_t first, count;
};

struct PoolAxis {
  int64_t extent = 1, count = 1;  // of x, and of windows
  int64_t size = 1, stride = 1, padding = 0, dilation = 1;

  Span span(int64_t window) const {
    const int64_t start = window * stride - padding, skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int64_t first = start + skipped * dilation;
    return {first, std::min(size - skipped, (extent - 1 - first) / dilation + 1)};
  }
};

struct Pooled {
  std::array<PoolAxis, 3> axes;
  int64_t planes;

  explicit Pooled(const Call& call) {
    const plugrad_view &x = call.in(0), &out = call.out();
    const auto& a = call.attributes<plugrad_pool>();
    planes = x.shape[0] * x.shape[1];
    for (int i = 0; i < x.rank - 2; ++i)
      axes[static_cast<size_t>(5 - x.rank + i)] = {x.shape[i + 2], out.shape[i + 2], a.size[i],
                                                   a.stride[i],    a.padding[i],     a.dilation[i]};
  }
  int64_t extent() const { return axes[0].extent * axes[1].extent * axes[2].extent; }
  int64_t windows() const { return axes[0].count * axes[1].count * axes[2].count; }
};

}  // namespace plugrad::cpu
