#include <backends/cuda/convolution.hpp>

#include <backends/cuda/tile.hpp>

namespace plugrad::cuda {
namespace {

int32_t narrowed(int64_t x) {
  if (x > INT32_MAX || x < -INT32_MAX)
    throw BackendError(PLUGRAD_UNSUPPORTED, "a window reaches over 2^31 elements of an axis");
  return static_cast<int32_t>(x);
}

// Returns a b + c for numbers >= 0, or INT64_MAX if the result overflows.
int64_t reach_of(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0, sum = 0;
  if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum)) return INT64_MAX;
  return sum;
}

}  // namespace

Index::Index(const plugrad_view& view) {
  for (int d = 2; d < view.rank; ++d) extent[kSpace - view.rank + d] = view.shape[d];
  for (int d = 0; d < kSpace; ++d) {
    volume *= extent[d];
    divider[d] = WideDivider(static_cast<uint64_t>(extent[d]));
  }
}

Contraction::Contraction(const Call& call) {
  const auto& attributes = call.attributes<plugrad_convolution>();
  groups = attributes.groups;
  const plugrad_view &first = call.in(0), &second = call.in(1), &out = call.out();
  const bool is_input = call.op().opcode == PLUGRAD_OP_CONVOLUTION_INPUT_GRAD;
  const bool is_weight = call.op().opcode == PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD;
  if (is_input) input_gradient(out, second, first);
  else if (is_weight) weight_gradient(second, out, first);
  else forward(first, second, out);
  set_windows(attributes, out.rank - 2, is_input, is_weight);
  cut(call.backend<CudaBackend>().multiprocessors());
}

void Contraction::forward(const plugrad_view& x, const plugrad_view& weight, const plugrad_view& y) {
  const Index space(x);
  k_index = Index(weight);
  j_index = Index(y);
  m = weight.shape[0] / groups;
  n = y.shape[0] * j_index.volume;
  k = weight.shape[1] * k_index.volume;
  left_row = k;
  left_outer = k_index.volume;
  left_group = m * left_row;
  right_k = space.volume;
  right_j = x.shape[1] * space.volume;
  right_group = weight.shape[1] * space.volume;
  out_row = j_index.volume;
  out_outer = y.shape[1] * j_index.volume;
  out_group = m * out_row;
  take_extents(space);
}

void Contraction::input_gradient(const plugrad_view& x, const plugrad_view& weight, const plugrad_view& y) {
  const Index space(y);
  k_index = Index(weight);
  j_index = Index(x);
  m = weight.shape[1];
  n = x.shape[0] * j_index.volume;
  k = weight.shape[0] / groups * k_index.volume;
  left_row = k_index.volume;
  left_outer = m * k_index.volume;
  left_group = weight.shape[0] / groups * left_outer;
  right_k = space.volume;
  right_j = y.shape[1] * space.volume;
  right_group = weight.shape[0] / groups * space.volume;
  out_row = j_index.volume;
  out_outer = x.shape[1] * j_index.volume;
  out_group = m * out_row;
  take_extents(space);
}

void Contraction::weight_gradient(const plugrad_view& x, const plugrad_view& weight, const plugrad_view& y) {
  const Index space(x);
  k_index = Index(y);
  j_index = Index(weight);
  m = weight.shape[0] / groups;
  n = weight.shape[1] * j_index.volume;
  k = y.shape[0] * k_index.volume;
  left_row = k_index.volume;
  left_outer = y.shape[1] * k_index.volume;
  left_group = m * left_row;
  right_k = x.shape[1] * space.volume;
  right_j = space.volume;
  right_group = weight.shape[1] * space.volume;
  out_row = n;
  out_outer = j_index.volume;
  out_group = m * out_row;
  take_extents(space);
}

void Contraction::take_extents(const Index& space) {
  for (int d = 0; d < kSpace; ++d) extent[d] = narrowed(space.extent[d]);
}

// A place y of the result and an element w of the window meet at y stride - padding + w dilation.
void Contraction::set_windows(const plugrad_convolution& a, int axes, bool of_input, bool of_weight) {
  for (int d = 0; d < kSpace; ++d) {
    const int i = d - (kSpace - axes);
    const int64_t stride = i < 0 ? 1 : a.stride[i], padding = i < 0 ? 0 : a.padding[i], dilation = i < 0 ? 1 : a.dilation[i];
    const int64_t j_step = of_input ? 1 : of_weight ? dilation : stride, k_step = of_weight ? stride : dilation;
    narrowed(reach_of(j_index.extent[d], j_step, reach_of(k_index.extent[d], k_step, padding)));
    step_j[d] = narrowed(j_step);
    step_k[d] = narrowed(of_input ? -k_step : k_step);
    shift[d] = narrowed(of_input ? padding : -padding);
    divisor[d] = Divider(static_cast<uint32_t>(of_input ? narrowed(stride) : 1));
  }
}

// Cuts long sums where there are too few tiles to fill the device.
void Contraction::cut(int multiprocessors) {
  constexpr uint64_t kBlocksEach = 2, kLeast = kFlush * kDepth;
  tiles = tiles_of(m) * tiles_of(n);
  const uint64_t tasks = tiles * static_cast<uint64_t>(groups), terms = static_cast<uint64_t>(k);
  const uint64_t wanted = kBlocksEach * static_cast<uint64_t>(multiprocessors) / tasks;
  const uint64_t cuts = std::max<uint64_t>(1, std::min(wanted, terms / kLeast));
  const uint64_t each = ((terms + cuts - 1) / cuts + kDepth - 1) / kDepth * kDepth;
  segment = static_cast<int64_t>(each);
  segments = (terms + each - 1) / each;
  all = tasks * segments;
}

}  // namespace plugrad::cuda
