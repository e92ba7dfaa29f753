// The operands of an elementwise op over their common shape, merged to as few axes as possible, the innermost first.
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <cstdint>

namespace plugrad::cuda {

// The most elements that one launch visits, and the largest offset of an element from its operand's first, so that kernels
// can use 32-bit indices. A test build sets it low, which cuts every larger op.
#ifndef PLUGRAD_CUDA_SPAN
#define PLUGRAD_CUDA_SPAN (1 << 30)
#endif
inline constexpr int64_t kSpan = PLUGRAD_CUDA_SPAN;

// The bits of an immediate in its dtype.
uint64_t immediate_bits(const plugrad_view& view);

// The address of an operand's first element, or an immediate's value.
struct Operand {
  char* base = nullptr;  // null: an immediate
  uint64_t value = 0;    // of an immediate, in its dtype
  uint32_t size = 0;     // bytes of an element

  Operand() = default;
  explicit Operand(const plugrad_view& view);
};

struct Box {
  static constexpr int kOperands = 7, kRank = PLUGRAD_MAX_RANK;
  int operands = 0, rank = 0;
  int64_t extent[kRank];
  Operand operand[kOperands];
  int64_t stride[kOperands][kRank];  // elements

  // Covers the first view's shape. Immediates and operands of one element have stride 0 on every axis. If order_is_free, it
  // sorts the axes by the first operand's strides, the smallest first.
  Box(const plugrad_view* const* views, int count, bool order_is_free = true);

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extent[d];
    return n;
  }
  bool is_narrow() const;

  // Calls body with narrow boxes that together cover this one.
  template <class Body> void cut(Body body) const {
    if (is_narrow()) return body(*this);
    const int axis = longest_axis();
    Box half = *this;
    half.extent[axis] = half_of(extent[axis]);
    half.cut(body);
    half.advance(axis, half.extent[axis]);
    half.extent[axis] = extent[axis] - half.extent[axis];
    half.cut(body);
  }

 private:
  void add_axis(const plugrad_view* const* views, int axis);
  void sort_axes();
  void merge_axes();
  int longest_axis() const;
  static int64_t half_of(int64_t extent) { return extent > 64 ? extent / 32 * 16 : extent / 2; }  // aligned for vectors
  void advance(int axis, int64_t steps) {
    for (int i = 0; i < operands; ++i)
      if (operand[i].base) operand[i].base += stride[i][axis] * steps * static_cast<int64_t>(operand[i].size);
  }
};

}  // namespace plugrad::cuda
