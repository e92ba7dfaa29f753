// Comparisons, where, and copies to new dtypes and devices.
#include <plugrad/ops/elementwise.hpp>

#include <core/ops/run.hpp>
#include <core/runtime/memory/transfer.hpp>
#include <core/tensor/checked.hpp>
#include <plugrad/ops/factories.hpp>

namespace plugrad {
namespace {
template <Op kOp> Tensor compare(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted(op_label(static_cast<uint32_t>(kOp)).c_str(), a, b, compare<kOp>);
  return binary(kOp, a, b, PLUGRAD_BOOL);
}
Tensor compare(Op op, const Tensor& a, Number b) {
  require(op, a);
  return binary_number(op, promoted(a, b), b, PLUGRAD_BOOL);
}
Tensor compare(Op op, Number a, const Tensor& b) {
  require(op, b);
  return binary_number(op, a, promoted(b, a), PLUGRAD_BOOL);
}
// Returns op(b, a). what: the name of the public function.
Tensor reversed(const char* what, Op op, const Tensor& a, const Tensor& b) {
  if (!same_shape(view_of(a), view_of(b))) common_shape(op, view_of(a), view_of(b), 1, what);
  return binary(op, b, a, PLUGRAD_BOOL);
}
}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare<Op::EQ>(a, b); }
Tensor eq(const Tensor& a, Number b) { return compare(Op::EQ, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare<Op::NE>(a, b); }
Tensor ne(const Tensor& a, Number b) { return compare(Op::NE, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare<Op::LT>(a, b); }
Tensor lt(const Tensor& a, Number b) { return compare(Op::LT, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare<Op::LE>(a, b); }
Tensor le(const Tensor& a, Number b) { return compare(Op::LE, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("gt", a, b, gt);
  return reversed("gt", Op::LT, a, b);
}
Tensor gt(const Tensor& a, Number b) { return compare(Op::LT, b, a); }
Tensor ge(const Tensor& a, const Tensor& b) {
  if (!is_together(a, b)) [[unlikely]]
    return promoted("ge", a, b, ge);
  return reversed("ge", Op::LE, a, b);
}
Tensor ge(const Tensor& a, Number b) { return compare(Op::LE, b, a); }

namespace {
void require_condition(const Tensor& condition, const Tensor& values) {
  require(Op::WHERE, condition);
  require(Op::WHERE, values);
  if (dtype_of(condition) != PLUGRAD_BOOL) throw_dtype(Op::WHERE, dtype_of(condition), "a condition of bool");
  if (&device_of(condition) != &device_of(values)) throw_not_together(Op::WHERE, condition, values);
}

// x in the dtype of a choice between x and a number: bools stay bools beside 0 and 1.
Tensor beside(const Tensor& x, Number number) {
  const bool is_bool = !number.floating() && (number.integer() == 0 || number.integer() == 1);
  return is_bool && x.dtype() == DType::boolean ? x : promoted(x, number);
}

// Either a or b may be the number; its tensor is then undefined.
Tensor choose(const Tensor& condition, const Tensor& a, const Tensor& b, Number number) {
  const Tensor& values = a.defined() ? a : b;
  require_condition(condition, values);
  DeviceState& device = device_of(values);
  const uint64_t alignment = device.info.alignment;
  plugrad_view shape = common_shape(Op::WHERE, view_of(condition), view_of(values), alignment);
  if (a.defined() && b.defined()) shape = common_shape(Op::WHERE, shape, view_of(b), alignment);
  const Immediate immediate = number_operand(Op::WHERE, dtype_of(values), number);
  const auto spread = [&](const Tensor& each) {
    return each.defined() ? broadcast_to(view_of(each), shape, alignment) : immediate.view;
  };
  const auto chosen = [&](const Tensor& each, const plugrad_view& view) {
    return each.defined() ? operand(each, view) : Operand(immediate);
  };
  const plugrad_view c = spread(condition), x = spread(a), y = spread(b);
  Tensor out = empty_like(Op::WHERE, device, shape, dtype_of(values));
  if (shape.count) run(Op::WHERE, {out}, {operand(condition, c), chosen(a, x), chosen(b, y)});
  return out;
}
constexpr auto kept_where =
    gradient<kInput0>([](const Tensor& grad, const Tensor& condition) { return where(condition, grad, 0); });
constexpr auto kept_elsewhere =
    gradient<kInput0>([](const Tensor& grad, const Tensor& condition) { return where(condition, 0, grad); });
}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  static constexpr auto kRule = rule("where", kNoGradient, kept_where, kept_elsewhere);
  require(Op::WHERE, a);
  require(Op::WHERE, b);
  if (a.device() == b.device() && a.dtype() != b.dtype()) {
    const DType dtype = promote_types(a.dtype(), b.dtype());
    return where(condition, cast(a, dtype), cast(b, dtype));
  }
  require_together(Op::WHERE, a, b);
  return differentiable(kRule, choose(condition, a, b, 0), condition, a, b);
}
Tensor where(const Tensor& condition, const Tensor& a, Number b) {
  static constexpr auto kRule = rule("where", kNoGradient, kept_where);
  require(Op::WHERE, a);
  return differentiable(kRule, choose(condition, beside(a, b), {}, b), condition, a);
}
Tensor where(const Tensor& condition, Number a, const Tensor& b) {
  static constexpr auto kRule = rule("where", kNoGradient, kept_elsewhere);
  require(Op::WHERE, b);
  return differentiable(kRule, choose(condition, {}, beside(b, a), a), condition, b);
}

// --- Copies.

Tensor cast(const Tensor& x, DType dtype) {
  static constexpr auto kRule =
      rule("cast", gradient<kDType>([](const Tensor& grad, DType from) { return cast(grad, from); }));
  require(Op::CAST, x);
  if (x.dtype() == dtype) return x;
  Tensor out = empty_like(Op::CAST, device_of(x), view_of(x), id_of(dtype));
  if (view_of(x).count) run(Op::CAST, {out}, {x});
  return is_inexact(dtype) ? differentiable(kRule, std::move(out), x) : out;
}

Tensor clone(const Tensor& x) {
  static constexpr auto kRule = rule("clone", gradient([](const Tensor& grad) { return grad; }));
  return differentiable(kRule, unary(Op::COPY, x), x);
}

Tensor to(const Tensor& x, Device device) {
  static constexpr auto kRule =
      rule("to", gradient<kPayload>([](const Tensor& grad, const Device& from) { return to(grad, from); }));
  require_defined(x, "to");
  if (!device.defined()) throw Error(Code::invalid, "[to] no device was named");
  if (x.device() == device) return x;
  const Tensor source = dense(x);
  Storage& from = *storage_of(source);
  Tensor out = empty(Op::COPY, device.state(), x.shape(), dtype_of(x), true);
  transfer::between(*storage_of(out), 0, from, view_of(source).offset - from.offset,
                    static_cast<uint64_t>(x.count() * item_size(x.dtype())));
  return differentiable(kRule, x.device(), std::move(out), x);
}

}  // namespace plugrad
