// The operands of an elementwise op over their common shape, merged to as few axes as possible, the innermost first: for
// backends with addresses as buffer handles and with kernels that take strides.
#pragma once
#include <plugrad/sdk/backend.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Returns the bits of an immediate in its dtype.
inline uint64_t immediate_bits(const plugrad_view& view) {
  uint64_t bits = 0;
  with_element_type(view.dtype, [&]<class T>(T) {
    const T value = immediate<T>(view);
    std::memcpy(&bits, &value, sizeof value);
  });
  return bits;
}

// The address of an operand's first element, or an immediate's value.
struct BoxOperand {
  char* base;      // null: an immediate
  uint64_t value;  // of an immediate, in its dtype
  uint32_t size;   // bytes of an element

  BoxOperand() = default;
  explicit BoxOperand(const plugrad_view& view)
      : base(is_immediate(view) ? nullptr : data<char>(view)), value(base ? 0 : immediate_bits(view)),
        size(static_cast<uint32_t>(element_size(view.dtype))) {}
};

// At most kOperands operands.
template <int kOperands> struct BoxOf {
  using Operand = BoxOperand;
  static constexpr int kRank = PLUGRAD_MAX_RANK;
  int operands = 0, rank = 0;
  int64_t extent[kRank];
  Operand operand[kOperands];
  int64_t stride[kOperands][kRank];  // elements

  // Covers the first view's shape. Immediates and operands of one element have stride 0 on every axis. If order_is_free, it
  // sorts the axes by the first operand's strides, the smallest first.
  BoxOf(const plugrad_view* const* views, int count, bool order_is_free = true) : operands(count) {
    uint16_t layout = 0;
    for (int i = 0; i < count; ++i) {
      operand[i] = Operand(*views[i]);
      layout |= views[i]->layout;
    }
    const bool alike = std::all_of(views, views + count,
                                   [&](const plugrad_view* v) { return v->count == views[0]->count || is_immediate(*v); });
    if (!(layout & PLUGRAD_STRIDED) && alike) {
      make_line(views[0]->count);
      return;
    }
    for (int d = views[0]->rank - 1; d >= 0; --d)
      if (views[0]->shape[d] != 1) add_axis(views, d);
    if (order_is_free) sort_axes();
    merge_axes();
    if (!rank) make_line(1);
  }

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extent[d];
    return n;
  }

  // Whether the box has at most `span` elements, and no element lies farther than `span` elements from its operand's first.
  bool is_narrow(int64_t span) const {
    if (count() > span) return false;
    for (int i = 0; i < operands; ++i) {
      int64_t low = 0, high = 0;
      for (int d = 0; d < rank; ++d) (stride[i][d] < 0 ? low : high) += stride[i][d] * (extent[d] - 1);
      if (high > span || low < -span) return false;
    }
    return true;
  }

  // Calls body with narrow boxes; together they cover this box.
  template <class Body> void cut(int64_t span, Body body) const {
    if (is_narrow(span)) [[likely]]
      return body(*this);
    halve(span, body);
  }

 private:
  template <class Body> [[gnu::noinline]] void halve(int64_t span, Body body) const {
    const int axis = longest_axis();
    BoxOf half = *this;
    half.extent[axis] = half_of(extent[axis]);
    half.cut(span, body);
    half.advance(axis, half.extent[axis]);
    half.extent[axis] = extent[axis] - half.extent[axis];
    half.cut(span, body);
  }

  void make_line(int64_t elements) {
    rank = 1;
    extent[0] = elements;
    for (int i = 0; i < operands; ++i) stride[i][0] = elements > 1 && operand[i].base;
  }

  void add_axis(const plugrad_view* const* views, int axis) {
    extent[rank] = views[0]->shape[axis];
    for (int i = 0; i < operands; ++i) stride[i][rank] = views[i]->count == 1 ? 0 : views[i]->strides[axis];
    ++rank;
  }

  // Sorts by the strides of the first operand, the output: adjacent threads then write adjacent elements.
  void sort_axes() {
    for (int d = 1; d < rank; ++d)
      for (int e = d; e > 0 && std::abs(stride[0][e]) < std::abs(stride[0][e - 1]); --e) {
        std::swap(extent[e], extent[e - 1]);
        for (int i = 0; i < operands; ++i) std::swap(stride[i][e], stride[i][e - 1]);
      }
  }

  void merge_axes() {
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      const bool runs_on =
          std::all_of(stride, stride + operands, [&](const int64_t* s) { return s[d] == s[last] * extent[last]; });
      if (runs_on) {
        extent[last] *= extent[d];
        continue;
      }
      extent[++last] = extent[d];
      for (int i = 0; i < operands; ++i) stride[i][last] = stride[i][d];
    }
    if (rank) rank = last + 1;
  }

  // Returns the axis along which the operands extend farthest.
  int longest_axis() const {
    int longest = 0;
    int64_t farthest = -1;
    for (int d = 0; d < rank; ++d) {
      if (extent[d] == 1) continue;
      int64_t reach = extent[d];
      for (int i = 0; i < operands; ++i) reach = std::max(reach, std::abs(stride[i][d]) * (extent[d] - 1));
      if (reach > farthest) {
        farthest = reach;
        longest = d;
      }
    }
    return longest;
  }

  static int64_t half_of(int64_t extent) { return extent > 64 ? extent / 32 * 16 : extent / 2; }  // aligned for vectors
  void advance(int axis, int64_t steps) {
    for (int i = 0; i < operands; ++i)
      if (operand[i].base) operand[i].base += stride[i][axis] * steps * static_cast<int64_t>(operand[i].size);
  }
};
using Box = BoxOf<7>;  // of any op but a fusion

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
