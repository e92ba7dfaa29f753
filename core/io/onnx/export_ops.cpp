#include <core/io/onnx/export_operands.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/quantization.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plugrad::io::onnx {
namespace {

using Export = Names (*)(const Exported& e);
struct PlainOp {
  uint32_t opcode;
  const char* name;
};
// Ops with the same operands, and without attributes.
constexpr PlainOp kPlain[] = {
    {PLUGRAD_OP_COPY, "Identity"},
    {PLUGRAD_OP_NEG, "Neg"},
    {PLUGRAD_OP_ABS, "Abs"},
    {PLUGRAD_OP_SIGN, "Sign"},
    {PLUGRAD_OP_SQRT, "Sqrt"},
    {PLUGRAD_OP_EXP, "Exp"},
    {PLUGRAD_OP_LOG, "Log"},
    {PLUGRAD_OP_TANH, "Tanh"},
    {PLUGRAD_OP_RELU, "Relu"},
    {PLUGRAD_OP_SIGMOID, "Sigmoid"},
    {PLUGRAD_OP_ERF, "Erf"},
    {PLUGRAD_OP_SIN, "Sin"},
    {PLUGRAD_OP_COS, "Cos"},
    {PLUGRAD_OP_ATAN, "Atan"},
    {PLUGRAD_OP_GELU, "Gelu"},
    {PLUGRAD_OP_ADD, "Add"},
    {PLUGRAD_OP_SUB, "Sub"},
    {PLUGRAD_OP_MUL, "Mul"},
    {PLUGRAD_OP_DIV, "Div"},
    {PLUGRAD_OP_QUOTIENT, "Div"},
    {PLUGRAD_OP_POW, "Pow"},
    {PLUGRAD_OP_MAXIMUM, "Max"},
    {PLUGRAD_OP_MINIMUM, "Min"},
    {PLUGRAD_OP_BITWISE_AND, "BitwiseAnd"},
    {PLUGRAD_OP_BITWISE_OR, "BitwiseOr"},
    {PLUGRAD_OP_BITWISE_XOR, "BitwiseXor"},
    {PLUGRAD_OP_MATMUL, "MatMul"},
    {PLUGRAD_OP_INTEGER_MATMUL, "MatMulInteger"},
};

Names converted(const Exported& e) { return {e.cast_to(e.in(0), e.dtype())}; }
Names remainder_of(const Exported& e) { return {e.g.node("Mod", {e.in(0), e.in(1)}, attribute("fmod", int64_t{1}))}; }
Names gelu_tanh(const Exported& e) {
  return {e.g.node("Gelu", {e.in(0)}, attribute("approximate", std::string_view("tanh")))};
}
Names silu_of(const Exported& e) {
  const std::string x = e.in(0);
  return {e.g.node("Mul", {x, e.g.node("Sigmoid", {x})})};
}

// ONNX shifts unsigned integers alone: a times, or divided by, 2^b in i64, rounded down.
template <bool kLeft> Names shifted(const Exported& e) {
  const auto wide = [&](size_t i) {
    return e.op.inputs[i].view ? e.in_as(i, DType::i64) : e.g.number(e.op.inputs[i].number, DType::i64);
  };
  const std::string by = wide(1), two = e.g.number(2, DType::i64), most = e.g.number(62, DType::i64);
  // 2^63 is not an i64: up to 62 bits at first, and up to two more then.
  const std::string first = e.g.node("Min", {by, most});
  const std::string rest = e.g.node("Min", {e.g.node("Sub", {by, first}), two});
  std::string a = wide(0);
  for (const std::string& bits : {first, rest}) {
    const std::string power = e.g.node("Pow", {two, bits});
    if (kLeft) a = e.g.node("Mul", {a, power});
    else a = e.g.node("Div", {e.g.node("Sub", {a, e.g.node("Mod", {a, power})}), power});
  }
  return {e.cast_to(a, e.dtype())};
}

// Comparisons, in a dtype that ONNX Runtime compares.
Names compared(const Exported& e, const char* op) {
  const DType given = e.op.inputs[0].view ? e.dtype_of(0) : e.dtype_of(1);
  const bool plain = is_floating(given) || given == DType::i32 || given == DType::i64;
  if (plain) return {e.g.node(op, {e.in(0), e.in(1)})};
  const auto wide = [&](size_t i) {
    return e.op.inputs[i].view ? e.in_as(i, DType::i32) : e.g.number(e.op.inputs[i].number, DType::i32);
  };
  return {e.g.node(op, {wide(0), wide(1)})};
}
Names equal_to(const Exported& e) { return compared(e, "Equal"); }
Names less_than(const Exported& e) { return compared(e, "Less"); }
Names at_most(const Exported& e) { return compared(e, "LessOrEqual"); }
Names differs(const Exported& e) { return {e.g.node("Not", {compared(e, "Equal")[0]})}; }

// ONNX Runtime chooses between integers of 32 and 64 bits and floating numbers.
Names chosen(const Exported& e) {
  const std::string condition = e.in(0);
  if (e.dtype() == DType::boolean) {
    const std::string other = e.g.node("And", {e.g.node("Not", {condition}), e.in(2)});
    return {e.g.node("Or", {e.g.node("And", {condition, e.in(1)}), other})};
  }
  const bool narrow = is_integer(e.dtype()) && item_size(e.dtype()) < 4 && e.dtype() != DType::u8;
  if (!narrow) return {e.g.node("Where", {condition, e.in(1), e.in(2)})};
  const std::string a = e.cast_to(e.in(1), DType::i32), b = e.cast_to(e.in(2), DType::i32);
  return {e.cast_to(e.g.node("Where", {condition, a, b}), e.dtype())};
}

Names filled(const Exported& e) {
  const Shape& shape = e.shape();
  const std::string extents = e.g.integers({shape.begin(), shape.end()});
  return {e.g.node("Expand", {e.g.number(e.op.inputs.at(0).number, e.dtype()), extents})};
}

Names counted(const Exported& e) {
  const Number start = e.op.inputs.at(0).number, step = e.op.inputs.at(1).number;
  std::vector<double> numbers;
  std::vector<int64_t> whole;
  for (int64_t i = 0; i < e.shape().count(); ++i) {
    numbers.push_back(start.real() + static_cast<double>(i) * step.real());
    whole.push_back(start.integer() + i * step.integer());
  }
  if (is_floating(e.dtype())) return {e.g.constant(numbers, e.shape(), e.dtype())};
  const std::string counted = e.g.reshaped(e.g.integers(whole), e.shape());
  return {e.dtype() == DType::i64 ? counted : e.cast_to(counted, e.dtype())};
}

std::vector<int64_t> reduced_axes(const Exported& e) {
  std::vector<int64_t> axes;
  const Shape& x = e.view(0).shape;
  for (size_t d = 0; d < x.size(); ++d)
    if (x[d] != e.shape()[d]) axes.push_back(static_cast<int64_t>(d));
  return axes;
}
Names reduced(const Exported& e, const char* op) {
  const std::string x = e.in_as(0, e.dtype());
  const std::vector<int64_t> axes = reduced_axes(e);
  return {axes.empty() ? x : e.g.node(op, {x, e.g.integers(axes)})};
}
Names summed(const Exported& e) { return reduced(e, "ReduceSum"); }
Names largest(const Exported& e) { return reduced(e, "ReduceMax"); }
Names smallest(const Exported& e) { return reduced(e, "ReduceMin"); }

// The row-major position within the reduced axes, which become the last axis.
Names place_of_largest(const Exported& e) {
  const std::vector<int64_t> axes = reduced_axes(e);
  const Shape& x = e.view(0).shape;
  std::vector<int64_t> order;
  Shape kept;
  int64_t count = 1;
  for (size_t d = 0; d < x.size(); ++d) {
    if (std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end()) {
      count *= x[d];
      continue;
    }
    order.push_back(static_cast<int64_t>(d));
    kept.push_back(x[d]);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  kept.push_back(count);
  const std::string last = e.g.reshaped(e.g.node("Transpose", {e.in(0)}, attribute("perm", order)), kept);
  const std::string place = e.g.node("ArgMax", {last}, attribute("axis", int64_t{-1}) + attribute("keepdims", int64_t{0}));
  return {e.g.reshaped(place, e.shape())};
}

Names product_plus(const Exported& e) { return {e.g.node("Add", {e.g.node("MatMul", {e.in(0), e.in(1)}), e.in(2)})}; }

// Codes of a weight are widened to the dtype of x.
Names quantized_product(const Exported& e) {
  const ModelView &codes = e.view(1), &scales = e.view(2);
  const auto constant = [&](const ModelView& view) {
    if (e.g.weight(view).defined()) return as_strided(e.g.weight(view), view.shape, view.strides, view.offset);
    throw Error(Code::unsupported, "codes that are not weights of the model are not supported");
  };
  const Shape& x = e.view(0).shape;
  const int64_t k = x.back(), bits = codes.shape[1] * 8 / k;
  const Tensor weight = dequantize(contiguous(constant(codes)), contiguous(constant(scales)), bits, DType::f64);
  const Tensor turned = contiguous(transpose(weight, 0, 1));
  return {e.g.node("MatMul", {e.in(0), e.g.constant(turned.to_vector<double>(), turned.shape(), e.dtype())})};
}

Names attention_of(const Exported& e) {
  const Shape &q = e.view(0).shape, &k = e.view(1).shape;
  std::vector<int64_t> order;
  for (int d = 0; d < k.rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const std::string scaled = e.g.node("Mul", {e.in(0), e.g.number(e.number("scale"), e.dtype())});
  std::string scores = e.g.node("MatMul", {scaled, e.g.node("Transpose", {e.in(1)}, attribute("perm", order))});
  if (e.number("causal") != 0) {
    std::vector<double> mask;
    const int64_t queries = q[q.size() - 2], keys = k[k.size() - 2];
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) mask.push_back(j <= i ? 0 : -std::numeric_limits<double>::infinity());
    scores = e.g.node("Add", {scores, e.g.constant(mask, {queries, keys}, e.dtype())});
  } else if (e.op.inputs[3].view || e.op.inputs[3].number.real() != 0) {
    scores = e.g.node("Add", {scores, e.in(3)});
  }
  return {e.g.node("MatMul", {e.g.node("Softmax", {scores}, attribute("axis", int64_t{-1})), e.in(2)})};
}

Names gathered(const Exported& e) { return {e.g.node("GatherElements", {e.in(0), e.in(1)}, attribute("axis", e.axis()))}; }
Names added_at(const Exported& e, const std::string& before) {
  const std::string attributes = attribute("axis", e.axis()) + attribute("reduction", std::string_view("add"));
  return {e.g.node("ScatterElements", {before, e.in(0), e.in(1)}, attributes)};
}
Names scattered(const Exported& e) { return added_at(e, e.g.read(e.out())); }
Names scattered_on_zeros(const Exported& e) {
  const Shape& shape = e.shape();
  return added_at(e, e.g.node("Expand", {e.g.number(0, e.dtype()), e.g.integers({shape.begin(), shape.end()})}));
}

Names softmax_of(const Exported& e) { return {e.g.node("Softmax", {e.in(0)}, attribute("axis", e.axis()))}; }
Names log_softmax_of(const Exported& e) { return {e.g.node("LogSoftmax", {e.in(0)}, attribute("axis", e.axis()))}; }

Names sorted(const Exported& e) {
  const int64_t count = e.shape()[static_cast<size_t>(e.axis())];
  const std::string attributes = attribute("axis", e.axis()) + attribute("largest", int64_t{e.number("descending") != 0});
  const bool plain = is_floating(e.dtype_of(0)) || e.dtype_of(0) == DType::i64 || e.dtype_of(0) == DType::i32;
  return {e.g.nodes("TopK", {plain ? e.in(0) : e.in_as(0, DType::i32), e.g.integers({count})}, 2, attributes)[1]};
}

Names layer_normed(const Exported& e) {
  const std::string attributes = attribute("axis", int64_t{-1}) + attribute("epsilon", e.number("epsilon"));
  return {e.g.node("LayerNormalization", {e.in(0), e.in(1), e.in(2)}, attributes)};
}

// x / sqrt(mean of x^2 + epsilon), over these axes.
std::string divided_by_size(const Exported& e, const std::string& x, const std::vector<int64_t>& axes) {
  const std::string squares = e.g.node("ReduceMean", {e.g.node("Mul", {x, x}), e.g.integers(axes)});
  return e.g.node("Div", {x, e.g.node("Sqrt", {e.g.node("Add", {squares, e.g.number(e.number("epsilon"), e.dtype())})})});
}
Names rms_normed(const Exported& e) { return {e.g.node("Mul", {divided_by_size(e, e.in(0), {-1}), e.in(1)})}; }

// Statistics of the batch: y, mean and variance of x (n, c, s).
Names batch_normed(const Exported& e) {
  const std::string x = e.in(0), center = e.g.node("ReduceMean", {x, e.g.integers({0, 2})});
  const std::string difference = e.g.node("Sub", {x, center});
  const std::string variance = e.g.node("ReduceMean", {e.g.node("Mul", {difference, difference}), e.g.integers({0, 2})});
  const Shape column{e.shape()[1], 1};
  const std::string scaled = e.g.node("Mul", {divided_by_size(e, difference, {0, 2}), e.g.reshaped(e.in(1), column)});
  Names results{e.g.node("Add", {scaled, e.g.reshaped(e.in(2), column)})};
  for (size_t i = 1; i < e.op.outputs.size(); ++i)
    results.push_back(e.g.reshaped(i == 1 ? center : variance, e.out(i).shape));
  return results;
}

Names summed_up(const Exported& e) {
  const std::string reverse = attribute("reverse", int64_t{e.number("reverse") != 0});
  return {e.g.node("CumSum", {e.in_as(0, e.dtype()), e.g.number(e.axis(), DType::i64)}, reverse)};
}

Names transformed(const Exported&) { throw Error(Code::unsupported, "Fourier transforms are not exported to ONNX"); }

struct ExportRow {
  uint32_t opcode;
  Export function;
};
constexpr ExportRow kExports[] = {
    {PLUGRAD_OP_CAST, converted},
    {PLUGRAD_OP_WHERE, chosen},
    {PLUGRAD_OP_FMOD, remainder_of},
    {PLUGRAD_OP_GELU_TANH, gelu_tanh},
    {PLUGRAD_OP_SILU, silu_of},
    {PLUGRAD_OP_BITWISE_LEFT_SHIFT, shifted<true>},
    {PLUGRAD_OP_BITWISE_RIGHT_SHIFT, shifted<false>},
    {PLUGRAD_OP_EQ, equal_to},
    {PLUGRAD_OP_NE, differs},
    {PLUGRAD_OP_LT, less_than},
    {PLUGRAD_OP_LE, at_most},
    {PLUGRAD_OP_FILL, filled},
    {PLUGRAD_OP_IOTA, counted},
    {PLUGRAD_OP_SUM, summed},
    {PLUGRAD_OP_MAX, largest},
    {PLUGRAD_OP_MIN, smallest},
    {PLUGRAD_OP_ARGMAX, place_of_largest},
    {PLUGRAD_OP_MATMUL_ADD, product_plus},
    {PLUGRAD_OP_QUANTIZED_MATMUL, quantized_product},
    {PLUGRAD_OP_ATTENTION, attention_of},
    {PLUGRAD_OP_GATHER, gathered},
    {PLUGRAD_OP_SCATTER_ADD, scattered},
    {PLUGRAD_OP_SCATTER_SUM, scattered_on_zeros},
    {PLUGRAD_OP_SOFTMAX, softmax_of},
    {PLUGRAD_OP_LOG_SOFTMAX, log_softmax_of},
    {PLUGRAD_OP_ARGSORT, sorted},
    {PLUGRAD_OP_TOPK, sorted},
    {PLUGRAD_OP_LAYER_NORM, layer_normed},
    {PLUGRAD_OP_RMS_NORM, rms_normed},
    {PLUGRAD_OP_BATCH_NORM, batch_normed},
    {PLUGRAD_OP_CUMSUM, summed_up},
    {PLUGRAD_OP_FFT, transformed},
    {PLUGRAD_OP_CONVOLUTION, convolved},
    {PLUGRAD_OP_CONVOLUTION_BIAS, convolved},
    {PLUGRAD_OP_CONVOLUTION_INPUT_GRAD, convolved_back},
    {PLUGRAD_OP_MAX_POOL, max_pooled},
};

constexpr bool has_counterpart(const OpInfo& op) {
  return !is_forward_op(op) || std::ranges::find(kPlain, op.opcode, &PlainOp::opcode) != std::end(kPlain) ||
         std::ranges::find(kExports, op.opcode, &ExportRow::opcode) != std::end(kExports);
}
static_assert(std::ranges::all_of(kOps, has_counterpart), "each op of a forward pass is in kPlain or in kExports");
}  // namespace

void export_op(ExportGraph& graph, const ModelOp& op) {
  const Exported e{graph, op};
  Names made;
  if (const auto plain = std::ranges::find(kPlain, op.opcode, &PlainOp::opcode); plain != std::end(kPlain)) {
    Names inputs;
    for (size_t i = 0; i < op.inputs.size(); ++i) inputs.push_back(e.in(i));
    made = {graph.node(plain->name, inputs)};
  } else if (const auto row = std::ranges::find(kExports, op.opcode, &ExportRow::opcode); row != std::end(kExports)) {
    made = row->function(e);
  } else {
    throw Error(Code::unsupported, "ONNX has no counterpart");
  }
  for (size_t i = 0; i < made.size() && i < op.outputs.size(); ++i) graph.write(op.outputs[i], made[i]);
}

}  // namespace plugrad::io::onnx
