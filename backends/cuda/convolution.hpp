// Convolutions and their gradients as products of matrices. The right operand is read through windows.
#pragma once
#include <cuda_runtime.h>
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/divider.hpp>

namespace plugrad::cuda {

inline constexpr int kSpace = 3;  // spatial axes; missing axes, in front, have extent 1

// An index of (outer, a, b, c) and its parts. `inner` is the index of (a, b, c).
struct Parts {
  int64_t outer, inner;
  int32_t at[kSpace];
};
struct Index {
  int64_t extent[kSpace] = {1, 1, 1}, volume = 1;
  WideDivider divider[kSpace];

  Index() = default;
  explicit Index(const plugrad_view& view);  // of its spatial axes
  __device__ __forceinline__ Parts parts(int64_t index) const {
    Parts parts;
    int64_t rest = index;
#pragma unroll
    for (int d = kSpace - 1; d >= 0; --d) {
      const auto above = static_cast<int64_t>(divider[d].quotient(static_cast<uint64_t>(rest)));
      parts.at[d] = static_cast<int32_t>(rest - above * extent[d]);
      rest = above;
    }
    parts.outer = rest;
    parts.inner = index - rest * volume;
    return parts;
  }
};

// out(m, j) = sum over k of left(m, k) right(k, j) in each group: m, j and k count channels, or images, and places in space.
//   left   an element is at m left_row + k.outer left_outer + k.inner
//   right  an element is at k.outer right_k + j.outer right_j + its place in space; each coordinate of the place is
//          (j's step_j + k's step_k + shift) / divisor. The element is 0 if this is not a whole number or lies outside of
//          the extent.
//   out    an element is at m out_row + j.outer out_outer + j.inner
struct Contraction {
  int64_t groups, m, n, k;
  Index k_index, j_index;
  int64_t left_row, left_outer, left_group, right_k, right_j, right_group, out_row, out_outer, out_group;
  int32_t step_j[kSpace], step_k[kSpace], shift[kSpace], extent[kSpace];
  Divider divisor[kSpace];
  int64_t segment;                // terms of a sum, added by one block
  uint64_t segments, tiles, all;  // segments of a sum; tiles of results in a group; tasks of all groups

  // From a call of a convolution, or of the gradient of its x or weight.
  explicit Contraction(const Call& call);
  // Elements in the workspace: the sums of the segments, segment after segment.
  uint64_t partials(const plugrad_view& out) const { return segments > 1 ? segments * static_cast<uint64_t>(out.count) : 0; }

 private:
  void forward(const plugrad_view& x, const plugrad_view& weight, const plugrad_view& y);
  void input_gradient(const plugrad_view& x, const plugrad_view& weight, const plugrad_view& y);
  void weight_gradient(const plugrad_view& x, const plugrad_view& weight, const plugrad_view& y);
  void set_windows(const plugrad_convolution& attributes, int axes, bool of_input, bool of_weight);
  void take_extents(const Index& space);  // of the right operand
  void cut(int multiprocessors);
};

}  // namespace plugrad::cuda
