// The operands of an elementwise op over their common shape, as few axes as they need: the innermost first.
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <cstdint>

namespace plugrad::cuda {

// The most elements that one launch visits, and the farthest that an operand's elements may lie from its first: so that
// kernels calculate in 32 bits. A test build sets it low, and every op is then cut.
#ifndef PLUGRAD_CUDA_SPAN
#define PLUGRAD_CUDA_SPAN (1 << 30)
#endif
inline constexpr int64_t kSpan = PLUGRAD_CUDA_SPAN;

// An immediate in its dtype's own bits.
uint64_t immediate_bits(const plugrad_view& view);

// Where an operand's first element is, or what it is.
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

  // Over the first view's shape. Immediates and operands of one element have stride 0 everywhere. Where order is free the
  // axis along which the first operand is closest comes first.
  Box(const plugrad_view* const* views, int count, bool order_is_free = true);

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extent[d];
    return n;
  }
  bool is_narrow() const;

  // Calls body with boxes that are narrow and together are this one.
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
