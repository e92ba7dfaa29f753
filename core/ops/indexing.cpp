#include <plugrad/ops/indexing.hpp>

#include <core/ops/run.hpp>
#include <core/ops/scatter.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// Kernels take indices of i64 only.
bool is_narrow_index(const Tensor& index) {
  return index.defined() && is_integer(index.dtype()) && index.dtype() != DType::i64;
}

// Checks that index fits x. Returns the normalised axis.
int require_index(Op op, const Tensor& x, int axis, const Tensor& index) {
  require(op, x);
  require(op, index);
  if (index.dtype() != DType::i64) throw_dtype(op, dtype_of(index), "indices of an integer dtype");
  if (x.device() != index.device()) throw_not_together(op, x, index);
  const std::string label = op_label(static_cast<uint32_t>(op));
  const int at = normal_axis(axis, x.rank(), label.c_str());
  bool fits = x.rank() == index.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == at || index.size(i) <= x.size(i);
  if (!fits)
    throw Error(Code::invalid, "[" + label + "] index of shape " + index.shape().text() + " does not fit x of shape " +
                                   x.shape().text() + " along axis " + std::to_string(at) +
                                   ": ranks must be equal, and its other extents no larger");
  if (index.count() && !x.size(at))
    throw Error(Code::index_error,
                "[" + label + "] axis " + std::to_string(at) + " of " + x.shape().text() + " has no elements to index");
  return at;
}

// Whether index has the extents of a shape, except along the axis.
bool spans(const Shape& shape, const Tensor& index, int axis) {
  for (int i = 0; i < index.rank(); ++i)
    if (i != axis && index.size(i) != shape[static_cast<size_t>(i)]) return false;
  return true;
}

// The part of a view within reach of an index of this shape.
plugrad_view reachable(const plugrad_view& x, const plugrad_view& index, int axis, uint64_t alignment) {
  plugrad_view v = x;
  for (int i = 0; i < v.rank; ++i)
    if (i != axis) v.shape[i] = index.shape[i];
  set_layout(v, alignment);
  return v;
}

void add_at(const Tensor& out, int axis, const Tensor& index, const Tensor& source) {
  if (!index.count()) return;
  const plugrad_view target = reachable(view_of(out), view_of(index), axis, device_of(out).info.alignment);
  const plugrad_axis attributes{sizeof attributes, axis};
  run(Op::SCATTER_ADD, {operand(out, target)}, {index, source}, attributes);
}

Tensor sums_at(const Shape& shape, int axis, const Tensor& index, const Tensor& source) {
  if (index.count() && spans(shape, index, axis)) {
    const Tensor out = empty(Op::SCATTER_SUM, device_of(source), shape, dtype_of(source));
    const plugrad_axis attributes{sizeof attributes, axis};
    if (try_run(Op::SCATTER_SUM, {out}, {index, source}, attributes)) return out;
    count_decomposition(source);
  }
  const Tensor out = zeros(shape, source.dtype(), source.device());
  add_at(out, axis, index, source);
  return out;
}
}  // namespace

Tensor gather(const Tensor& x, int axis, const Tensor& index) {
  static constexpr auto kRule = rule(
      "gather", gradient<kShape, kInput1, kPayload>([](const Tensor& grad, const Shape& shape, const Tensor& positions,
                                                       int along) { return scatter_sum(shape, along, positions, grad); }));
  if (is_narrow_index(index)) return gather(x, axis, cast(index, DType::i64));
  if (x.defined() && index.defined() && !x.rank())
    return reshape(gather(reshape(x, {1}), axis, index.rank() ? index : reshape(index, {1})), index.shape());
  const int at = require_index(Op::GATHER, x, axis, index);
  DeviceState& device = device_of(x);
  Tensor out = empty_like(Op::GATHER, device, view_of(index), dtype_of(x));
  const plugrad_view source = reachable(view_of(x), view_of(index), at, device.info.alignment);
  const plugrad_axis attributes{sizeof attributes, at};
  if (index.count()) run(Op::GATHER, {out}, {operand(x, source), index}, attributes);
  return differentiable(kRule, at, std::move(out), x, index);
}

Tensor scatter_sum(const Shape& shape, int axis, const Tensor& index, const Tensor& source) {
  static constexpr auto kRule = rule("scatter_sum", kNoGradient,
                                     gradient<kInput0, kPayload>([](const Tensor& grad, const Tensor& positions, int along) {
                                       return gather(grad, along, positions);
                                     }));
  return differentiable(kRule, axis, sums_at(shape, axis, index, source), index, source);
}

Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  static constexpr auto kRule = rule("scatter_add", gradient([](const Tensor& grad) { return grad; }), kNoGradient,
                                     gradient<kInput1, kPayload>([](const Tensor& grad, const Tensor& positions, int along) {
                                       return gather(grad, along, positions);
                                     }));
  if (is_narrow_index(index)) return scatter_add(x, axis, cast(index, DType::i64), source);
  if (x.defined() && index.defined() && source.defined() && !x.rank() && !index.rank() && !source.rank())
    return reshape(scatter_add(reshape(x, {1}), axis, reshape(index, {1}), reshape(source, {1})), {});
  const int at = require_index(Op::SCATTER_ADD, x, axis, index);
  require_together(Op::SCATTER_ADD, x, source);
  require_number_dtype(Op::SCATTER_ADD, dtype_of(x));
  if (source.shape() != index.shape())
    throw Error(Code::invalid, "[scatter_add] source has shape " + source.shape().text() + ", but index has shape " +
                                   index.shape().text() + ": they must be equal");
  Tensor out = unary(Op::COPY, x);
  add_at(out, at, index, source);
  return differentiable(kRule, at, std::move(out), x, index, source);
}

}  // namespace plugrad
