#include <plugrad/ops/matmul.hpp>

#include <core/ops/affine.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad {
namespace {
[[noreturn]] void refuse_product(const Tensor& a, const Tensor& b, const char* why) {
  throw Error(Code::invalid, std::string("[matmul] ") + why + ": " + a.shape().text() + " x " + b.shape().text());
}

// Broadcasts the batch extents of x to `batch` and keeps the last two axes.
plugrad_view batched(const plugrad_view& x, const Shape& batch, uint64_t alignment) {
  plugrad_view shape = x;
  shape.rank = static_cast<uint8_t>(batch.rank() + 2);
  std::ranges::copy(batch, shape.shape);
  for (int i = 0; i < 2; ++i) shape.shape[batch.rank() + i] = x.shape[x.rank - 2 + i];
  return same_shape(x, shape) ? x : broadcast_to(x, shape, alignment);
}

Shape batch_of(const plugrad_view& v) { return Shape(std::span<const int64_t>(v.shape, static_cast<size_t>(v.rank) - 2)); }

// The product of integers or bools with elements: a wrapping sum of products of columns and rows. Bools are summed as i64.
Tensor integer_product(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::boolean) return cast(integer_product(cast(a, DType::i64), cast(b, DType::i64)), DType::boolean);
  Tensor sum;
  for (int64_t i = 0; i < a.size(-1); ++i) {
    const Tensor term = mul(slice(a, -1, i, i + 1), slice(b, -2, i, i + 1));
    sum = i ? add(sum, term) : term;
  }
  return sum;
}

// The views of a product of a and b: the dense product, and the operands with the batch extents of both.
struct Product {
  plugrad_view out, left, right;
};
Product product_of(const Tensor& a, const Tensor& b) {
  const plugrad_view &x = view_of(a), &y = view_of(b);
  if (x.shape[x.rank - 1] != y.shape[y.rank - 2]) refuse_product(a, b, "inner sizes differ");
  const uint64_t alignment = device_of(a).info.alignment;
  Shape batch;
  if (x.rank > 2 || y.rank > 2) {
    try {
      batch = broadcast_shapes(batch_of(x), batch_of(y));
    } catch (const Error&) {
      refuse_product(a, b, "batch extents do not broadcast");
    }
  }
  Shape shape = batch;
  shape.push_back(x.shape[x.rank - 2]);
  shape.push_back(y.shape[y.rank - 1]);
  return {dense_view(shape, dtype_of(a), alignment), batched(x, batch, alignment), batched(y, batch, alignment)};
}

bool are_matrices_of_reals(const Tensor& a, const Tensor& b) {
  const plugrad_view &x = view_of(a), &y = view_of(b);
  return x.rank == 2 && y.rank == 2 && x.count && y.count && is_inexact(dtype_of(a));
}

// The usual case: the operands need no new views.
Tensor product_of_matrices(const Tensor& a, const Tensor& b) {
  const plugrad_view &x = view_of(a), &y = view_of(b);
  if (x.shape[1] != y.shape[0]) refuse_product(a, b, "inner sizes differ");
  DeviceState& device = device_of(a);
  plugrad_view shape = x;
  shape.offset = 0;
  shape.shape[1] = y.shape[1];
  set_dense(shape, device.info.alignment);
  Local& l = local();
  Tensor out = empty_like(l, Op::MATMUL, device, shape, dtype_of(a));
  run(l, Op::MATMUL, {out}, {a, b});
  return out;
}

Tensor product(const Tensor& a, const Tensor& b) {
  if (are_matrices_of_reals(a, b)) [[likely]]
    return product_of_matrices(a, b);
  const Product planned = product_of(a, b);
  DeviceState& device = device_of(a);
  if (!a.size(-1)) return filled(device, planned.out, dtype_of(a), 0);
  if (!is_inexact(dtype_of(a)) && planned.out.count) return integer_product(a, b);
  Tensor out = empty_like(Op::MATMUL, device, planned.out, dtype_of(a));
  if (planned.out.count) run(Op::MATMUL, {out}, {operand(a, planned.left), operand(b, planned.right)});
  return out;
}

// Whether an operand is a transposed matrix, such as a weight. Its gradient is then computed transposed, too, and the
// untransposed matrix gets a dense gradient.
bool is_turned(const plugrad_view& v) { return v.strides[v.rank - 2] == 1 && v.strides[v.rank - 1] > 1; }

Tensor matrices(const Tensor& a, const Tensor& b);
Tensor matrices(const Tensor& a, const Tensor& b) {
  static constexpr auto kOfLeft =
      gradient<kInput1>([](const Tensor& grad, const Tensor& right) { return matrices(grad, transpose(right)); });
  static constexpr auto kOfTurnedLeft =
      gradient<kInput1>([](const Tensor& grad, const Tensor& right) { return transpose(matrices(right, transpose(grad))); });
  static constexpr auto kOfRight =
      gradient<kInput0>([](const Tensor& grad, const Tensor& left) { return matrices(transpose(left), grad); });
  static constexpr auto kOfTurnedRight =
      gradient<kInput0>([](const Tensor& grad, const Tensor& left) { return transpose(matrices(transpose(grad), left)); });
  static constexpr auto kRule = rule("matmul", kOfLeft, kOfRight), kTurnedRight = rule("matmul", kOfLeft, kOfTurnedRight),
                        kTurnedLeft = rule("matmul", kOfTurnedLeft, kOfRight),
                        kBothTurned = rule("matmul", kOfTurnedLeft, kOfTurnedRight);
  const bool left = is_turned(view_of(a)), right = is_turned(view_of(b));
  const auto& chosen = left ? right ? kBothTurned : kTurnedLeft : right ? kTurnedRight : kRule;
  return differentiable(chosen, product(a, b), a, b);
}

// a b + c, unrecorded; c broadcasts to the product.
Tensor product_plus(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Product planned = product_of(a, b);
  if (planned.out.count && a.size(-1)) {
    DeviceState& device = device_of(a);
    const Tensor out = empty_like(Op::MATMUL_ADD, device, planned.out, dtype_of(a));
    const plugrad_view added = broadcast_to(view_of(c), planned.out, device.info.alignment);
    if (try_run(Op::MATMUL_ADD, {out}, {operand(a, planned.left), operand(b, planned.right), operand(c, added)})) return out;
    count_decomposition(a);
  }
  return add(product(a, b), c);
}

Tensor affine_product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const NoGrad unrecorded;
  const Tensor turned = transpose(weight);
  return bias.defined() ? product_plus(x, turned, bias) : product(x, turned);
}
}  // namespace

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  static constexpr auto kOfX =
      gradient<kInput1>([](const Tensor& grad, const Tensor& rows) { return matrices(grad, rows); });
  static constexpr auto kOfWeight =
      gradient<kInput0>([](const Tensor& grad, const Tensor& left) { return matrices(transpose(grad), left); });
  static constexpr auto kOfBias = gradient<>([](const Tensor& grad) { return grad; });
  static constexpr auto kRule = rule("linear", kOfX, kOfWeight);
  static constexpr auto kRuleWithBias = rule("linear", kOfX, kOfWeight, kOfBias);
  if (!is_together(x, weight) || (bias.defined() && !is_together(x, bias))) {
    const Tensor out = matmul(x, transpose(weight));
    return bias.defined() ? add(out, bias) : out;
  }
  const Tensor out = affine_product(x, weight, bias);
  return bias.defined() ? differentiable(kRuleWithBias, out, x, weight, bias) : differentiable(kRule, out, x, weight);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(matmul, a, b);
  if (!is_together(a, b)) [[unlikely]]
    return promoted("matmul", a, b, matmul);
  const int rank_a = view_of(a).rank, rank_b = view_of(b).rank;
  if (!rank_a || !rank_b) refuse_product(a, b, "an operand has rank 0");
  const bool row = rank_a == 1, column = rank_b == 1;
  if (!row && !column) return matrices(a, b);
  if (a.size(-1) != b.size(column ? 0 : -2)) refuse_product(a, b, "inner sizes differ");
  Tensor out = matrices(row ? unsqueeze(a, 0) : a, column ? unsqueeze(b, 1) : b);
  if (column) out = squeeze(out, {-1});
  return row ? squeeze(out, {column ? -1 : -2}) : out;
}

}  // namespace plugrad
