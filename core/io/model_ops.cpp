// Runs the ops of saved models by public functions, which check their operands and compose ops that a device lacks.
#include <core/io/model_format.hpp>

#include <core/ops/affine.hpp>
#include <core/ops/extent.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arithmetic.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/attention.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/convolution.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/fft.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/normalization.hpp>
#include <plugrad/ops/pooling.hpp>
#include <plugrad/ops/quantization.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/trigonometry.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cstring>

namespace plugrad::io {
namespace {

// An op with its operands.
struct Applied {
  const ModelOp& op;
  const std::vector<ModelMemory>& memories;
  const std::vector<Tensor>& inputs;  // undefined for numbers
  const Tensor& before;
  Device device;

  DType dtype() const { return memories[op.outputs[0].memory].dtype; }
  const Shape& shape() const { return op.outputs[0].shape; }
  bool is_number(size_t i) const { return !op.inputs[i].view; }
  // Returns the input. A number becomes a tensor of one element in the dtype of the tensors that are not bool, or, without
  // such tensors, in the dtype of the output.
  Tensor in(size_t i) const {
    if (!is_number(i)) return inputs[i];
    DType type = dtype();
    for (const Tensor& each : inputs)
      if (each.defined() && each.dtype() != DType::boolean) type = each.dtype();
    return full({}, op.inputs[i].number, type, device);
  }
  double number(const char* name) const { return op.attributes.numbers.at(name); }
  int axis() const {
    const double axis = number("axis");
    if (!(axis >= 0 && axis < int{PLUGRAD_MAX_RANK})) throw Error(Code::invalid, "an axis is " + std::to_string(axis));
    return static_cast<int>(axis);
  }
  bool flag(const char* name) const { return number(name) != 0; }
  // Returns the numbers of a list that belong to the spatial axes of the first input.
  Shape list(const char* name) const {
    const Shape& all = op.attributes.lists.at(name);
    Shape some;
    for (int i = 0; i < all.rank() && i < inputs[0].rank() - 2; ++i) some.push_back(all[i]);
    return some;
  }
};

using Function = Tensor (*)(const Applied&);
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using BinaryNumber = Tensor (*)(const Tensor&, Number);

template <Unary f> Tensor unary(const Applied& n) { return f(n.in(0)); }
template <Binary f> Tensor binary(const Applied& n) { return f(n.in(0), n.in(1)); }
// Passes a right operand that is a number as a number, because kernels are faster with numbers.
template <Binary f, BinaryNumber g> Tensor with_number(const Applied& n) {
  return n.is_number(1) && !n.is_number(0) ? g(n.in(0), n.op.inputs[1].number) : f(n.in(0), n.in(1));
}
template <Tensor (*f)(const Tensor&, const Shape&, bool)> Tensor reduced(const Applied& n) {
  Shape axes;
  const Tensor& x = n.inputs[0];
  if (x.rank() != n.shape().rank()) throw Error(Code::invalid, "a reduction changes the rank");
  for (int d = 0; d < x.rank(); ++d)
    if (x.size(d) != n.shape()[d]) axes.push_back(d);
  for (int d = 0; d < x.rank() && !axes.rank(); ++d)  // else an axis of one element was reduced
    if (x.size(d) == 1) axes.push_back(d);
  return f(x, axes, true);
}

Tensor filled(const Applied& n) { return full(n.shape(), n.op.inputs[0].number, n.dtype(), n.device); }
Tensor counted(const Applied& n) {
  if (!n.is_number(0) || !n.is_number(1)) throw Error(Code::invalid, "iota needs numbers");
  const Tensor out = empty(n.shape(), n.dtype(), n.device);
  const auto dtype = static_cast<uint8_t>(n.dtype());
  require_number_dtype(Op::IOTA, dtype);
  const Immediate start = number_operand(Op::IOTA, dtype, n.op.inputs[0].number);
  const Immediate step = number_operand(Op::IOTA, dtype, n.op.inputs[1].number);
  plugrad::run(Op::IOTA, {out}, {start, step});
  return out;
}
Tensor converted(const Applied& n) {
  return n.inputs[0].dtype() == n.dtype() ? clone(n.inputs[0]) : cast(n.inputs[0], n.dtype());
}
Tensor chosen(const Applied& n) { return where(n.in(0), n.in(1), n.in(2)); }
Tensor quotient(const Applied& n) { return div(n.in(0), n.in(1), RoundingMode::trunc); }
Tensor product_plus(const Applied& n) { return affine(n.in(0), transpose(n.in(1)), n.in(2)); }
Tensor quantized_product(const Applied& n) { return quantized_matmul(n.in(0), n.in(1), n.in(2)); }
Tensor gelu_exact(const Applied& n) { return gelu(n.in(0)); }
Tensor gelu_tanh(const Applied& n) { return gelu(n.in(0), Approximation::tanh); }
// The number 0 in the place of a mask means that there is none. Older files have a single zero in memory.
Tensor attention(const Applied& n) {
  const bool causal = n.flag("causal"), is_number = n.is_number(3);
  if (is_number && n.op.inputs[3].number.real() != 0) throw Error(Code::invalid, "its mask is a number that is not 0");
  if (causal && !is_number && std::ranges::any_of(n.op.inputs[3].view->strides, [](int64_t stride) { return stride != 0; }))
    throw Error(Code::invalid, "it is causal and has a mask");
  const Tensor mask = causal || is_number ? Tensor() : n.in(3);
  return scaled_dot_product_attention(n.in(0), n.in(1), n.in(2), mask, 0, causal, n.number("scale"));
}
Tensor gathered(const Applied& n) { return gather(n.in(0), n.axis(), n.in(1)); }
Tensor scattered(const Applied& n) { return scatter_add(n.before, n.axis(), n.in(0), n.in(1)); }
Tensor scattered_on_zeros(const Applied& n) {
  return scatter_add(zeros(n.shape(), n.dtype(), n.device), n.axis(), n.in(0), n.in(1));
}
Tensor log_softmax_of(const Applied& n) { return log_softmax(n.in(0), n.axis()); }
Tensor softmax_of(const Applied& n) { return softmax(n.in(0), n.axis()); }
Tensor sorted(const Applied& n) { return argsort(n.in(0), n.axis(), n.flag("descending"), true); }
Tensor first_sorted(const Applied& n) {
  const int axis = n.axis();
  if (axis >= n.shape().rank()) throw Error(Code::invalid, "topk has no axis " + std::to_string(axis));
  return topk(n.in(0), n.shape()[axis], axis, n.flag("descending")).indices;
}
Tensor layer_normed(const Applied& n) {
  return layer_norm(n.in(0), {n.inputs[0].size(-1)}, n.in(1), n.in(2), n.number("epsilon"));
}
Tensor rms_normed(const Applied& n) { return rms_norm(n.in(0), {n.inputs[0].size(-1)}, n.in(1), n.number("epsilon")); }
Tensor summed_up(const Applied& n) {
  if (!n.flag("reverse")) return cumsum(n.in(0), n.axis());
  return flip(cumsum(flip(n.in(0), {n.axis()}), n.axis()), {n.axis()});
}

// Complex numbers are pairs along the last axis.
Tensor transformed(const Applied& n) {
  const double wanted = n.number("kind"), scale = n.number("scale");
  if (!(wanted >= 0 && wanted <= 3)) throw Error(Code::invalid, "its kind of transform is " + std::to_string(wanted));
  const auto kind = static_cast<uint32_t>(wanted);
  const bool real_in = kind == PLUGRAD_FFT_REAL, real_out = kind == PLUGRAD_FFT_INVERSE_REAL;
  const bool backward = real_out || kind == PLUGRAD_FFT_BACKWARD;
  const Tensor x = real_in ? n.in(0) : view_as_complex(n.in(0));
  if (n.axis() >= std::min(x.rank(), n.shape().rank())) throw Error(Code::invalid, "it has no axis of its transform");
  const int64_t length = real_in ? x.size(n.axis()) : n.shape()[n.axis()];
  const auto one = backward ? fft::Norm::forward : fft::Norm::backward;  // without a scale
  const auto inverse = backward ? fft::Norm::backward : fft::Norm::forward;
  const bool divides = scale == 1 / static_cast<double>(length);
  const auto function = real_in ? fft::rfft : real_out ? fft::irfft : backward ? fft::ifft : fft::fft;
  const Tensor y = function(x, length, n.axis(), divides ? inverse : one);
  return mul(real_out ? y : view_as_real(y), divides ? 1 : scale);
}

int64_t groups_of(const Applied& n) {
  const double wanted = n.number("groups");
  if (!(wanted >= 1 && wanted <= 1e9)) throw Error(Code::invalid, "its groups are " + std::to_string(wanted));
  return static_cast<int64_t>(wanted);
}
// The forward pass of a transposed convolution.
Tensor convolved_back(const Applied& n) {
  return convolution_input_backward(n.in(0), n.in(1), n.shape(), n.list("stride"), n.list("padding"), n.list("dilation"),
                                    groups_of(n));
}

// An op's output says how many windows it has. A function counts them by its input, which may end within the last window,
// or behind it.
struct Windows {
  const Applied& n;
  Shape size, stride, padding, dilation;

  // How far the windows reach beyond the input and its padding, along a spatial axis.
  int64_t missing(int axis) const {
    const Extent last = (Extent(n.shape()[axis + 2]) - 1) * stride[axis] + Extent(dilation[axis]) * (Extent(size[axis]) - 1);
    return last + 1 - Extent(2) * padding[axis] - n.inputs[0].size(axis + 2);
  }
  bool reach_beyond() const {
    for (int i = 0; i < size.rank(); ++i)
      if (missing(i) > 0) return true;
    return false;
  }
  // The input, with zeros behind it up to the end of the last window.
  Tensor whole_input() const {
    std::vector<int64_t> pads;
    for (int i = size.rank(); i-- > 0;) {
      const int64_t more = std::max<int64_t>(missing(i), 0);
      if (more > Extent(stride[i]) + Extent(dilation[i]) * size[i]) throw Error(Code::invalid, "its result is too large");
      pads.insert(pads.end(), {0, more});
    }
    return reach_beyond() ? pad(n.in(0), pads) : n.in(0);
  }
  Tensor cut(Tensor made) const {
    for (int i = 2; i < made.rank() && made.rank() == n.shape().rank(); ++i)
      if (made.size(i) > n.shape()[i]) made = slice(made, i, 0, n.shape()[i]);
    return made;
  }
};
// The sizes of a weight's windows.
Shape spatial(const Tensor& weight) {
  Shape sizes;
  for (int i = 2; i < weight.rank(); ++i) sizes.push_back(weight.size(i));
  return sizes;
}
Windows windows_of(const Applied& n, const Shape& size) {
  const Windows made{n, size, n.list("stride"), n.list("padding"), n.list("dilation")};
  const int spatial = size.rank(), rank = n.inputs[0].rank();
  const bool fits = spatial > 0 && made.stride.rank() == spatial && made.padding.rank() == spatial &&
                    made.dilation.rank() == spatial && rank == spatial + 2 && n.shape().rank() == rank;
  if (!fits) throw Error(Code::invalid, "its windows have another rank than its input");
  return made;
}

Tensor convolved(const Applied& n) {
  const Tensor weight = n.in(1), bias = n.inputs.size() > 2 ? n.in(2) : Tensor();
  const Windows w = windows_of(n, spatial(weight));
  const Tensor x = w.whole_input();
  const int64_t groups = groups_of(n);
  if (x.rank() == 3) return w.cut(conv1d(x, weight, bias, w.stride, w.padding, w.dilation, groups));
  if (x.rank() == 4) return w.cut(conv2d(x, weight, bias, w.stride, w.padding, w.dilation, groups));
  return w.cut(conv3d(x, weight, bias, w.stride, w.padding, w.dilation, groups));
}
ValuesIndices pooled(const Applied& n) {
  const Windows w = windows_of(n, n.list("size"));
  const Tensor x = n.in(0);
  const auto pool = x.rank() == 3   ? max_pool1d_with_indices
                    : x.rank() == 4 ? max_pool2d_with_indices
                                    : max_pool3d_with_indices;
  const ValuesIndices made = pool(x, w.size, w.stride, w.padding, w.dilation, w.reach_beyond());
  return {w.cut(made.values), w.cut(made.indices)};
}

struct Row {
  uint32_t opcode;
  Function function;
};
constexpr Row kFunctions[] = {
    {PLUGRAD_OP_FILL, filled},
    {PLUGRAD_OP_COPY, unary<clone>},
    {PLUGRAD_OP_CAST, converted},
    {PLUGRAD_OP_IOTA, counted},
    {PLUGRAD_OP_NEG, unary<neg>},
    {PLUGRAD_OP_ABS, unary<abs>},
    {PLUGRAD_OP_SIGN, unary<sign>},
    {PLUGRAD_OP_SQRT, unary<sqrt>},
    {PLUGRAD_OP_EXP, unary<exp>},
    {PLUGRAD_OP_LOG, unary<log>},
    {PLUGRAD_OP_TANH, unary<tanh>},
    {PLUGRAD_OP_RELU, unary<relu>},
    {PLUGRAD_OP_SIGMOID, unary<sigmoid>},
    {PLUGRAD_OP_ERF, unary<erf>},
    {PLUGRAD_OP_SIN, unary<sin>},
    {PLUGRAD_OP_COS, unary<cos>},
    {PLUGRAD_OP_ATAN, unary<atan>},
    {PLUGRAD_OP_GELU, gelu_exact},
    {PLUGRAD_OP_GELU_TANH, gelu_tanh},
    {PLUGRAD_OP_SILU, unary<silu>},
    {PLUGRAD_OP_ADD, with_number<add, add>},
    {PLUGRAD_OP_SUB, with_number<sub, sub>},
    {PLUGRAD_OP_MUL, with_number<mul, mul>},
    {PLUGRAD_OP_DIV, with_number<div, div>},
    {PLUGRAD_OP_POW, with_number<pow, pow>},
    {PLUGRAD_OP_MAXIMUM, with_number<maximum, maximum>},
    {PLUGRAD_OP_MINIMUM, with_number<minimum, minimum>},
    {PLUGRAD_OP_FMOD, with_number<fmod, fmod>},
    {PLUGRAD_OP_QUOTIENT, quotient},
    {PLUGRAD_OP_BITWISE_AND, with_number<bitwise_and, bitwise_and>},
    {PLUGRAD_OP_BITWISE_OR, with_number<bitwise_or, bitwise_or>},
    {PLUGRAD_OP_BITWISE_XOR, with_number<bitwise_xor, bitwise_xor>},
    {PLUGRAD_OP_BITWISE_LEFT_SHIFT, with_number<bitwise_left_shift, bitwise_left_shift>},
    {PLUGRAD_OP_BITWISE_RIGHT_SHIFT, with_number<bitwise_right_shift, bitwise_right_shift>},
    {PLUGRAD_OP_EQ, with_number<eq, eq>},
    {PLUGRAD_OP_NE, with_number<ne, ne>},
    {PLUGRAD_OP_LT, with_number<lt, lt>},
    {PLUGRAD_OP_LE, with_number<le, le>},
    {PLUGRAD_OP_WHERE, chosen},
    {PLUGRAD_OP_SUM, reduced<sum>},
    {PLUGRAD_OP_MAX, reduced<max>},
    {PLUGRAD_OP_MIN, reduced<min>},
    {PLUGRAD_OP_ARGMAX, reduced<argmax>},
    {PLUGRAD_OP_MATMUL, binary<matmul>},
    {PLUGRAD_OP_MATMUL_ADD, product_plus},
    {PLUGRAD_OP_QUANTIZED_MATMUL, quantized_product},
    {PLUGRAD_OP_INTEGER_MATMUL, binary<integer_matmul>},
    {PLUGRAD_OP_ATTENTION, attention},
    {PLUGRAD_OP_GATHER, gathered},
    {PLUGRAD_OP_SCATTER_ADD, scattered},
    {PLUGRAD_OP_SCATTER_SUM, scattered_on_zeros},
    {PLUGRAD_OP_LOG_SOFTMAX, log_softmax_of},
    {PLUGRAD_OP_SOFTMAX, softmax_of},
    {PLUGRAD_OP_ARGSORT, sorted},
    {PLUGRAD_OP_TOPK, first_sorted},
    {PLUGRAD_OP_LAYER_NORM, layer_normed},
    {PLUGRAD_OP_RMS_NORM, rms_normed},
    {PLUGRAD_OP_CUMSUM, summed_up},
    {PLUGRAD_OP_FFT, transformed},
    {PLUGRAD_OP_CONVOLUTION, convolved},
    {PLUGRAD_OP_CONVOLUTION_BIAS, convolved},
    {PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, convolved_back},
};

Function function_of(uint32_t opcode) {
  const auto found = std::ranges::find(kFunctions, opcode, &Row::opcode);
  return found == std::end(kFunctions) ? nullptr : found->function;
}

constexpr bool has_function(const OpInfo& op) {
  return !is_forward_op(op) || returns_all_results(op.opcode) ||
         std::ranges::find(kFunctions, op.opcode, &Row::opcode) != std::end(kFunctions);
}
static_assert(std::ranges::all_of(kOps, has_function), "each op of a forward pass is in kFunctions");

// --- Attributes.

template <class T> T block_of(const void* block) {
  T made;
  std::memcpy(&made, block, sizeof made);
  return made;
}
Shape three(const int64_t (&numbers)[3]) { return {numbers[0], numbers[1], numbers[2]}; }
}  // namespace

bool is_saved_op(uint32_t opcode) { return returns_all_results(opcode) || function_of(opcode); }

std::vector<Tensor> run_op(const ModelOp& op, const std::vector<ModelMemory>& memories, const std::vector<Tensor>& inputs,
                           const Tensor& before, Device device) {
  const Applied node{op, memories, inputs, before, device};
  if (op.opcode == PLUGRAD_OP_MAX_POOL) {
    const ValuesIndices made = pooled(node);
    return {made.values, made.indices};
  }
  if (op.opcode == PLUGRAD_OP_BATCH_NORM) {
    const ChannelNorm made = batch_norm_with_statistics(node.in(0), node.in(1), node.in(2), node.number("epsilon"));
    return {made.y, made.mean, made.variance};
  }
  return {function_of(op.opcode)(node)};
}

namespace {
ModelAttributes attributes_of_windows(const plugrad_convolution& a) {
  return {{{"groups", static_cast<double>(a.groups)}},
          {{"stride", three(a.stride)}, {"padding", three(a.padding)}, {"dilation", three(a.dilation)}}};
}
ModelAttributes attributes_of_windows(const plugrad_pool& a) {
  return {{},
          {{"size", three(a.size)},
           {"stride", three(a.stride)},
           {"padding", three(a.padding)},
           {"dilation", three(a.dilation)}}};
}
}  // namespace

ModelAttributes attributes_of(uint32_t opcode, const void* block) {
  switch (opcode) {
    case PLUGRAD_OP_GATHER:
    case PLUGRAD_OP_SCATTER_ADD:
    case PLUGRAD_OP_SCATTER_SUM:
    case PLUGRAD_OP_LOG_SOFTMAX:
    case PLUGRAD_OP_SOFTMAX: return {{{"axis", block_of<plugrad_axis>(block).axis}}, {}};
    case PLUGRAD_OP_ARGSORT:
    case PLUGRAD_OP_TOPK: {
      const auto a = block_of<plugrad_sort>(block);
      return {{{"axis", a.axis}, {"descending", a.descending}}, {}};
    }
    case PLUGRAD_OP_CUMSUM: {
      const auto a = block_of<plugrad_scan>(block);
      return {{{"axis", a.axis}, {"reverse", a.reverse}}, {}};
    }
    case PLUGRAD_OP_FFT: {
      const auto a = block_of<plugrad_fft>(block);
      return {{{"axis", a.axis}, {"kind", a.kind}, {"scale", a.scale}}, {}};
    }
    case PLUGRAD_OP_LAYER_NORM:
    case PLUGRAD_OP_BATCH_NORM:
    case PLUGRAD_OP_RMS_NORM: return {{{"epsilon", block_of<plugrad_norm>(block).epsilon}}, {}};
    case PLUGRAD_OP_ATTENTION: {
      const auto a = block_of<plugrad_attention>(block);
      return {{{"causal", a.causal}, {"scale", a.scale}}, {}};
    }
    case PLUGRAD_OP_CONVOLUTION:
    case PLUGRAD_OP_CONVOLUTION_BIAS:
    case PLUGRAD_OP_CONVOLUTION_INPUT_GRAD: return attributes_of_windows(block_of<plugrad_convolution>(block));
    case PLUGRAD_OP_MAX_POOL: return attributes_of_windows(block_of<plugrad_pool>(block));
    default: return {};
  }
}

}  // namespace plugrad::io
