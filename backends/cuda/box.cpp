#include <backends/cuda/box.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace plugrad::cuda {
namespace {

template <class T> uint64_t bits_of(const plugrad_view& view) {
  const T value = immediate<T>(view);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace

uint64_t immediate_bits(const plugrad_view& view) {
  uint64_t bits = 0;
  with_element_type(view.dtype, [&]<class T>(T) { bits = bits_of<T>(view); });
  return bits;
}

Operand::Operand(const plugrad_view& view) : size(static_cast<uint32_t>(element_size(view.dtype))) {
  if (is_immediate(view))
    value = immediate_bits(view);
  else
    base = data<char>(view);
}

Box::Box(const plugrad_view* const* views, int count, bool order_is_free) : operands(count) {
  uint16_t layout = 0;
  for (int i = 0; i < count; ++i) {
    operand[i] = Operand(*views[i]);
    layout |= views[i]->layout;
  }
  const bool alike = std::all_of(views, views + count,
                                 [&](const plugrad_view* v) { return v->count == views[0]->count || is_immediate(*v); });
  if (!(layout & PLUGRAD_STRIDED) && alike) {
    rank = 1;
    extent[0] = views[0]->count;
    for (int i = 0; i < count; ++i) stride[i][0] = extent[0] > 1 && operand[i].base;
    return;
  }
  for (int d = views[0]->rank - 1; d >= 0; --d)
    if (views[0]->shape[d] != 1) add_axis(views, d);
  if (order_is_free) sort_axes();
  merge_axes();
  if (rank) return;
  rank = 1;
  extent[0] = 1;
  for (int i = 0; i < count; ++i) stride[i][0] = 0;
}

void Box::add_axis(const plugrad_view* const* views, int axis) {
  extent[rank] = views[0]->shape[axis];
  for (int i = 0; i < operands; ++i) stride[i][rank] = views[i]->count == 1 ? 0 : views[i]->strides[axis];
  ++rank;
}

// Sorts by the strides of the first operand, the output: adjacent threads then write adjacent elements.
void Box::sort_axes() {
  for (int d = 1; d < rank; ++d)
    for (int e = d; e > 0 && std::abs(stride[0][e]) < std::abs(stride[0][e - 1]); --e) {
      std::swap(extent[e], extent[e - 1]);
      for (int i = 0; i < operands; ++i) std::swap(stride[i][e], stride[i][e - 1]);
    }
}

void Box::merge_axes() {
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

bool Box::is_narrow() const {
  if (count() > kSpan) return false;
  for (int i = 0; i < operands; ++i) {
    int64_t low = 0, high = 0;
    for (int d = 0; d < rank; ++d) (stride[i][d] < 0 ? low : high) += stride[i][d] * (extent[d] - 1);
    if (high > kSpan || low < -kSpan) return false;
  }
  return true;
}

// Returns the axis along which the operands extend farthest.
int Box::longest_axis() const {
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

}  // namespace plugrad::cuda
