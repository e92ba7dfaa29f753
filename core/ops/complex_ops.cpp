// The ops on complex numbers, as ops on their parts.
#include <core/runtime/dispatch/complex_ops.hpp>

#include <core/autograd/autocast.hpp>
#include <core/ops/complex_functions.hpp>
#include <core/ops/run.hpp>
#include <core/runtime/dispatch/stand_ins.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace plugrad {
namespace {
using complex_numbers::Parts;
namespace formulas = complex_numbers;

enum class Half { real, imaginary };

// A part of an operand. A number is real. An operand of another dtype is in both parts.
plugrad_view part_view(const plugrad_view& x, Half half, uint64_t alignment) {
  plugrad_view v = x;
  if (!is_complex(x.dtype)) return v;
  v.dtype = part_dtype(x.dtype);
  if (v.layout & PLUGRAD_IMMEDIATE) {
    if (half == Half::imaginary) v.offset = 0;
    return v;
  }
  if (half == Half::imaginary) v.offset += dtype_size(v.dtype);
  for (int i = 0; i < v.rank; ++i) v.strides[i] *= 2;
  set_layout(v, alignment);
  return v;
}

// The elements of dense memory as real numbers.
plugrad_view flat_view(const plugrad_view& x, uint64_t alignment) {
  plugrad_view v = x;
  v.dtype = part_dtype(x.dtype);
  v.rank = 1;
  v.shape[0] = 2 * x.count;
  set_dense(v, alignment);
  return v;
}

// A call of the same op with other views of its operands.
class Revised {
 public:
  template <class View> Revised(const OpCall& call, View view) : call_(call) {
    for (int i = 0; i < call.operands(); ++i) {
      views_[i] = view(*call.views[i]);
      pointers_[i] = &views_[i];
    }
  }
  bool run() const {
    OpCall revised = call_;
    revised.views = pointers_;
    return stand_ins::run_inner(revised, false);
  }

 private:
  const OpCall& call_;
  plugrad_view views_[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* pointers_[PLUGRAD_MAX_OPERANDS];
};

// An op on complex numbers: its operands as tensors.
class ComplexCall {
 public:
  explicit ComplexCall(const OpCall& call) : op(call) {}

  uint64_t alignment() const { return op.storages[0]->device->info.alignment; }
  const plugrad_view& input_view(size_t i) const { return *op.views[op.outputs + i]; }
  bool is_number(size_t i) const { return input_view(i).layout & PLUGRAD_IMMEDIATE; }
  // Not for a number that a compiled step takes anew: see Number::lifted.
  bool is_fixed_number(size_t i) const {
    const auto& marks = input_view(i).reserved;
    return is_number(i) && std::all_of(std::begin(marks), std::end(marks), [](uint8_t each) { return !each; });
  }
  double number(size_t i) const { return std::bit_cast<double>(input_view(i).offset); }
  Tensor output() const { return tensor_over(*op.storages[0], *op.views[0]); }
  Tensor input(size_t i) const {
    if (!is_number(i)) return tensor_over(*op.storages[op.outputs + i], input_view(i));
    const plugrad_view number = part_view(input_view(i), Half::real, alignment());
    const Tensor out = output(), one = empty(Op::FILL, device_of(out), {}, number.dtype);
    plugrad::run(Op::FILL, {operand(one)}, {Immediate{number}});
    return with_view(one, broadcast_to(view_of(one), view_of(out), alignment()));
  }
  Parts parts(size_t i) const { return formulas::parts_of(input(i)); }

  void give(const Parts& made) const {
    const Parts out = formulas::parts_of(output());
    plugrad::run(Op::COPY, {out.re}, {made.re});
    plugrad::run(Op::COPY, {out.im}, {made.im});
  }
  void give(const Tensor& made) const { plugrad::run(Op::COPY, {output()}, {made}); }

  const OpCall& op;
};

using ComplexOp = void (*)(const ComplexCall& call);

// --- Ops on each part by itself.

void by_part(const ComplexCall& c) {
  for (const Half half : {Half::real, Half::imaginary})
    Revised(c.op, [&](const plugrad_view& v) { return part_view(v, half, c.alignment()); }).run();
}
// The same of elements that lie side by side.
void elementwise_by_part(const ComplexCall& c) {
  bool are_dense = true;
  for (int i = 0; i < c.op.operands(); ++i)
    are_dense &= c.op.views[i]->layout == (c.op.views[i]->layout & PLUGRAD_UNALIGNED);
  if (!are_dense || c.op.views[0]->count > INT32_MAX / 2) return by_part(c);
  Revised(c.op, [&](const plugrad_view& v) { return flat_view(v, c.alignment()); }).run();
}

// A number beside a complex operand is in both parts of a product, and in the real part of a sum.
void scaled(const ComplexCall& c) {
  const auto halved = [&](Half half) {
    return [&, half](const plugrad_view& v) {
      return part_view(v, v.layout & PLUGRAD_IMMEDIATE ? Half::real : half, c.alignment());
    };
  };
  Revised(c.op, halved(Half::real)).run();
  Revised(c.op, halved(Half::imaginary)).run();
}
void product(const ComplexCall& c) {
  if (c.is_number(0) || c.is_number(1)) return scaled(c);
  c.give(formulas::product(c.parts(0), c.parts(1)));
}
void quotient(const ComplexCall& c) {
  if (c.is_number(1)) return scaled(c);
  c.give(formulas::quotient(c.parts(0), c.parts(1)));
}
void power(const ComplexCall& c) {
  if (c.is_fixed_number(1)) return c.give(formulas::power(c.parts(0), c.number(1)));
  c.give(formulas::power(c.parts(0), c.parts(1)));
}

// --- Ops on both parts.

template <Parts (*kFormula)(const Parts&)> void function(const ComplexCall& c) { c.give(kFormula(c.parts(0))); }
void length(const ComplexCall& c) { c.give(formulas::length(c.parts(0))); }

void equal(const ComplexCall& c) {
  const Parts a = c.parts(0), b = c.parts(1);
  c.give(logical_and(eq(a.re, b.re), eq(a.im, b.im)));
}
void unequal(const ComplexCall& c) {
  const Parts a = c.parts(0), b = c.parts(1);
  c.give(logical_or(ne(a.re, b.re), ne(a.im, b.im)));
}

// To a real dtype the real part is cast, and to bool whether either part is not 0.
void cast_parts(const ComplexCall& c) {
  const auto to = static_cast<DType>(c.op.views[0]->dtype);
  const Parts x = c.parts(0);
  if (to == DType::boolean) c.give(logical_or(ne(x.re, 0), ne(x.im, 0)));
  else if (is_complex(to)) c.give({cast(x.re, part_of(to)), cast(x.im, part_of(to))});
  else c.give(cast(x.re, to));
}

// One real product gives all four: (re a; im a) (re b, im b).
void matrix_product(const ComplexCall& c) {
  const Parts a = c.parts(0), b = c.parts(1);
  const int64_t rows = a.re.size(-2), columns = b.re.size(-1);
  const Tensor all = matmul(cat({a.re, a.im}, -2), cat({b.re, b.im}, -1));
  const auto block = [&](int i, int j) {
    return slice(slice(all, -2, i * rows, (i + 1) * rows), -1, j * columns, (j + 1) * columns);
  };
  c.give({sub(block(0, 0), block(1, 1)), add(block(0, 1), block(1, 0))});
}

// Linear in each of two inputs.
void bilinear(const ComplexCall& c) {
  const auto product_of = [&](Half first, Half second) {
    const plugrad_view out = part_view(*c.op.views[0], Half::real, c.alignment());
    const Tensor made = empty(static_cast<Op>(c.op.opcode), device_of(c.output()), shape_of(out), out.dtype);
    const plugrad_view left = part_view(c.input_view(0), first, c.alignment()),
                       right = part_view(c.input_view(1), second, c.alignment());
    const plugrad_view* const views[] = {&view_of(made), &left, &right};
    Storage* const storages[] = {storage_of(made), c.op.storages[1], c.op.storages[2]};
    OpCall real = c.op;
    real.views = views;
    real.storages = storages;
    stand_ins::run_inner(real, false);
    return made;
  };
  const Tensor re = sub(product_of(Half::real, Half::real), product_of(Half::imaginary, Half::imaginary));
  c.give({re, add(product_of(Half::real, Half::imaginary), product_of(Half::imaginary, Half::real))});
}

constexpr auto kComplexOps = [] {
  std::array<ComplexOp, 256> ops{};
  for (const Op each : {Op::FILL, Op::IOTA, Op::SUM, Op::CUMSUM, Op::GATHER, Op::SCATTER_ADD, Op::SCATTER_SUM, Op::WHERE})
    ops[static_cast<size_t>(each)] = by_part;
  for (const Op each : {Op::COPY, Op::NEG, Op::ADD, Op::SUB}) ops[static_cast<size_t>(each)] = elementwise_by_part;
  for (const Op each : {Op::CONVOLUTION, Op::CONVOLUTION_INPUT_GRAD, Op::CONVOLUTION_WEIGHT_GRAD})
    ops[static_cast<size_t>(each)] = bilinear;
  const auto set = [&](Op op, ComplexOp by) { ops[static_cast<size_t>(op)] = by; };
  set(Op::MUL, product);
  set(Op::DIV, quotient);
  set(Op::POW, power);
  set(Op::ABS, length);
  set(Op::SIGN, function<formulas::sign>);
  set(Op::SQRT, function<formulas::sqrt>);
  set(Op::EXP, function<formulas::exp>);
  set(Op::LOG, function<formulas::log>);
  set(Op::TANH, function<formulas::tanh>);
  set(Op::SIN, function<formulas::sin>);
  set(Op::COS, function<formulas::cos>);
  set(Op::ATAN, function<formulas::atan>);
  set(Op::EQ, equal);
  set(Op::NE, unequal);
  set(Op::CAST, cast_parts);
  set(Op::MATMUL, matrix_product);
  return ops;
}();

bool on_parts(const OpCall& call) {
  const ComplexOp run = call.opcode < kComplexOps.size() ? kComplexOps[call.opcode] : nullptr;
  if (!run) return false;
  const NoGrad unrecorded;
  const WithoutAutocast plainly;
  run(ComplexCall(call));
  return true;
}

[[maybe_unused]] const bool kIsSet = [] {
  run_on_parts = on_parts;
  return true;
}();
}  // namespace
}  // namespace plugrad
