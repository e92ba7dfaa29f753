// Iterates N operands of any size over shared axes: maps an element's place in row-major order to its offset in each.
#pragma once
#include <cuda_runtime.h>
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/divider.hpp>

namespace plugrad::cuda {

// The stride along an axis in elements; 0 if the axis has extent 1.
inline int64_t stride_of(const plugrad_view& view, int axis) {
  return view.count == 1 || view.shape[axis] == 1 ? 0 : view.strides[axis];
}

// The absolute stride. Stride 0 counts as the largest distance, because reads along that axis are never adjacent.
inline uint64_t distance(int64_t stride) {
  return stride ? static_cast<uint64_t>(stride < 0 ? -stride : stride) : UINT64_MAX;
}

template <int N> struct Reach {
  int64_t at[N];
};

template <int N> struct Walk {
  uint64_t count = 1;
  uint32_t rank = 0;
  WideDivider divider[PLUGRAD_MAX_RANK];
  int64_t extent[PLUGRAD_MAX_RANK];  // the innermost first
  int64_t stride[N][PLUGRAD_MAX_RANK];

  // Adds an axis outside the axes added so far; merges it with the last axis where strides allow.
  void add(int64_t its_extent, const int64_t (&strides)[N]) {
    if (its_extent == 1) return;
    count *= static_cast<uint64_t>(its_extent);
    bool runs_on = rank > 0;
    for (int k = 0; k < N && runs_on; ++k) runs_on = strides[k] == stride[k][rank - 1] * extent[rank - 1];
    if (runs_on) {
      extent[rank - 1] *= its_extent;
      return;
    }
    extent[rank] = its_extent;
    for (int k = 0; k < N; ++k) stride[k][rank] = strides[k];
    ++rank;
  }
  // Makes the innermost axis count packs of `each` elements.
  void pack(int64_t each) {
    extent[0] /= each;
    count /= static_cast<uint64_t>(each);
    for (int k = 0; k < N; ++k) stride[k][0] *= each;
  }
  // Prepares the divisions. Called last.
  void close() {
    for (uint32_t d = 0; d < rank; ++d) divider[d] = WideDivider(static_cast<uint64_t>(extent[d]));
  }
  int64_t innermost_stride(int k) const { return rank ? stride[k][0] : 0; }

  __host__ __device__ __forceinline__ Reach<N> reach(uint64_t i) const {
    Reach<N> reach{};
#pragma unroll 1
    for (uint32_t d = 0; d < rank; ++d) {
      const uint64_t above = d + 1 < rank ? divider[d].quotient(i) : 0;
      const auto inside = static_cast<int64_t>(i - above * static_cast<uint64_t>(extent[d]));
#pragma unroll
      for (int k = 0; k < N; ++k) reach.at[k] += inside * stride[k][d];
      i = above;
    }
    return reach;
  }
};

// An input, possibly an immediate.
template <class T> struct Input {
  const T* base;
  T value;

  explicit Input(const plugrad_view& view)
      : base(is_immediate(view) ? nullptr : data<const T>(view)), value(is_immediate(view) ? immediate<T>(view) : T()) {}
  __device__ __forceinline__ T at(int64_t offset) const { return base ? base[offset] : value; }
};

}  // namespace plugrad::cuda
