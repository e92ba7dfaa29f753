// Attention and its gradients without a graph, for libraries with an autograd of their own.
#include <core/ops/backward.hpp>
#include <core/ops/fused_attention.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/statistics.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace plugrad {
namespace {
constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Operands {
  Tensor query, key, value, mask;  // mask: added to the scores, in their shape, unless it is undefined
  plugrad_attention attributes;
};

// x's shape with other extents of the last two axes, or without the last.
Shape with(const Tensor& x, int64_t rows, int64_t columns) {
  Shape shape = x.shape();
  shape[shape.size() - 2] = rows;
  shape[shape.size() - 1] = columns;
  return shape;
}
Shape row_shape(const Tensor& x) {
  Shape shape;
  for (int i = 0; i + 1 < x.rank(); ++i) shape.push_back(x.size(i));
  return shape;
}

Operands operands_of(const char* name, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                     bool is_causal, std::optional<double> scale) {
  require_gradient(name, query, key);
  require_gradient(name, query, value);
  const bool ranks = query.rank() >= 2 && key.rank() == query.rank() && value.rank() == query.rank();
  if (!ranks || key.shape() != with(query, key.size(-2), query.size(-1)) ||
      value.shape() != with(query, key.size(-2), value.size(-1)))
    refuse(name, "query is " + query.shape().text() + ", key " + key.shape().text() + " and value " + value.shape().text() +
                     ": expected (.., l, e), (.., s, e) and (.., s, v)");
  if (mask.defined() && is_causal) refuse(name, "is_causal excludes mask: put the triangle into the mask");
  if (mask.defined()) require_gradient(name, query, mask);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(query.size(-1), 1))));
  return {query,
          key,
          value,
          mask.defined() ? expand(mask, with(query, query.size(-2), key.size(-2))) : Tensor(),
          {sizeof(plugrad_attention), is_causal ? 1u : 0u, factor}};
}

Tensor scores_of(const Operands& o) {
  const Tensor products = mul(matmul(at_least_f32(o.query), transpose(at_least_f32(o.key))), o.attributes.scale);
  if (!o.attributes.causal) return o.mask.defined() ? add(products, at_least_f32(o.mask)) : products;
  const Tensor seen = tril(ones({products.size(-2), products.size(-1)}, DType::boolean, products.device()));
  return where(seen, products, kNever);
}

// lse (.., l, 1) -> the weights of the keys; 0 for a query without keys.
Tensor weights_of(const Tensor& scores, const Tensor& lse) {
  const Tensor none = eq(lse, kNever);
  return where(none, 0, exp(sub(scores, where(none, 0, lse))));
}
}  // namespace

Attention attention_with_lse(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                             std::optional<double> scale) {
  const WithoutGraph plainly;
  const Operands o = operands_of("attention_with_lse", query, key, value, mask, is_causal, scale);
  if (query.count() && key.count() && value.count()) {
    DeviceState& device = device_of(query);
    const Tensor out = empty(Op::ATTENTION, device, with(query, query.size(-2), value.size(-1)), dtype_of(query));
    const Tensor lse = empty(Op::ATTENTION, device, with(query, query.size(-2), 1), accumulator_dtype(dtype_of(query)));
    const MaskOperand added(o.mask, query.dtype());
    if (try_run(Op::ATTENTION, {out, lse}, {o.query, o.key, o.value, added}, o.attributes))
      return {out, reshape(lse, row_shape(query))};
    count_decomposition(query);
  }
  const Tensor scores = scores_of(o);
  const Tensor lse = scores.size(-1) ? logsumexp(scores, {-1}, true)
                                     : full(with(query, query.size(-2), 1), kNever, scores.dtype(), query.device());
  const Tensor out = matmul(weights_of(scores, lse), at_least_f32(value));
  return {cast(out, query.dtype()), reshape(lse, row_shape(query))};
}

AttentionGradients attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& mask, const Tensor& out, const Tensor& lse, bool is_causal,
                                      std::optional<double> scale) {
  constexpr const char* kName = "attention_backward";
  const WithoutGraph plainly;
  const Operands o = operands_of(kName, query, key, value, mask, is_causal, scale);
  require_gradient_alike(kName, grad, out);
  require_gradient(kName, grad, query);
  require_floating(kName, lse);
  if (out.shape() != with(query, query.size(-2), value.size(-1)) || lse.shape() != row_shape(query) ||
      &device_of(lse) != &device_of(query))
    refuse(kName, "grad and out are " + out.shape().text() + " and lse " + lse.shape().text() +
                      ": expected (.., l, v) and (.., l) on the device of query");
  const Tensor sums = unsqueeze(cast(lse, accumulator_of(query.dtype())), -1);
  if (query.count() && key.count() && value.count()) {
    const auto alike = [](const Tensor& x) {
      return empty_like(Op::ATTENTION_BACKWARD, device_of(x), view_of(x), dtype_of(x));
    };
    const AttentionGradients all{alike(query), alike(key), alike(value)};
    const MaskOperand added(o.mask, query.dtype());
    if (try_run(Op::ATTENTION_BACKWARD, {all.query, all.key, all.value}, {grad, o.query, o.key, o.value, added, out, sums},
                o.attributes))
      return all;
    count_decomposition(query);
  }
  const Tensor weights = weights_of(scores_of(o), sums), wide = at_least_f32(grad);
  const Tensor change = matmul(wide, transpose(at_least_f32(value)));
  const Tensor along = sum(mul(wide, at_least_f32(out)), {-1}, true);
  const Tensor slopes = mul(mul(weights, sub(change, along)), o.attributes.scale);
  return {cast(matmul(slopes, at_least_f32(key)), query.dtype()),
          cast(matmul(transpose(slopes), at_least_f32(query)), key.dtype()),
          cast(matmul(transpose(weights), wide), value.dtype())};
}

}  // namespace plugrad
