#include <plugrad/ops/attention.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/autocast_rules.hpp>
#include <core/ops/fused_attention.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>

#include <cmath>
#include <limits>

namespace plugrad {
namespace {
constexpr const char* kSdpa = "scaled_dot_product_attention";
constexpr double kNever = -std::numeric_limits<double>::infinity();

void require_fitting(const Tensor& query, const Tensor& key, const Tensor& value) {
  require_floating(kSdpa, query);
  for (const Tensor* each : {&key, &value}) {
    require_defined(*each, kSdpa);
    require_together(kSdpa, query, *each);
  }
  if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2 || query.size(-1) != key.size(-1) ||
      key.size(-2) != value.size(-2))
    refuse(kSdpa, "query is " + query.shape().text() + ", key " + key.shape().text() + " and value " + value.shape().text() +
                      ": expected (.., l, e), (.., s, e) and (.., s, v)");
}

void require_shared_heads(const Tensor& x, const Tensor& query) {
  if (x.rank() < 3 || query.rank() < 3 || !x.size(-3) || query.size(-3) % x.size(-3))
    refuse(kSdpa, "query is " + query.shape().text() + ", and a key or value " + x.shape().text() +
                      ": with enable_gqa their heads (axis -3) must divide query's");
}

// x (.., heads / n, s, e) with each head n times.
Tensor shared_heads(const Tensor& x, const Tensor& query) {
  return query.size(-3) == x.size(-3) ? x : repeat_interleave(x, query.size(-3) / x.size(-3), -3);
}

// True where a query sees no key at all, along the last axis.
Tensor rows_without_keys(const Tensor& mask) {
  const NoGrad constant;
  if (mask.dtype() == DType::boolean) return eq(max(cast(mask, DType::f32), {-1}, true), 0);
  return eq(max(mask, {-1}, true), kNever);
}

Tensor masked_weights(const Tensor& scores, const Tensor& mask) {
  const Tensor seen = mask.dtype() == DType::boolean ? where(mask, scores, kNever) : add(scores, mask);
  if (!mask.count()) return softmax(seen, -1);
  // A row of -inf alone would give NaN, also in its gradient.
  const Tensor none = rows_without_keys(mask);
  return where(none, 0, softmax(where(none, 0, seen), -1));
}

Tensor causal_weights(const Tensor& scores) {
  const Tensor seen = tril(ones({scores.size(-2), scores.size(-1)}, DType::boolean, scores.device()));
  return softmax(where(seen, scores, kNever), -1);
}

// Checks a mask unless it is undefined: it excludes is_causal, and its dtype is query's or bool.
void require_mask(const Tensor& query, const Tensor& mask, bool causal) {
  if (!mask.defined()) return;
  if (causal) refuse(kSdpa, "is_causal excludes attn_mask: put the triangle into the mask");
  if (mask.dtype() != DType::boolean && mask.dtype() != query.dtype())
    refuse(kSdpa, std::string("attn_mask is ") + dtype_name(mask.dtype()) + ": expected bool or query's dtype, " +
                      dtype_name(query.dtype()));
}
}  // namespace

Tensor attention_weights(const Tensor& scores, const Tensor& mask, bool causal) {
  if (causal) return causal_weights(scores);
  return mask.defined() ? masked_weights(scores, mask) : softmax(scores, -1);
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                                    double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  if (autocasting()) [[unlikely]]
    return in_low_precision(scaled_dot_product_attention, query, key, value, attn_mask, dropout_p, is_causal, scale,
                            enable_gqa);
  require_fitting(query, key, value);
  require_mask(query, attn_mask, is_causal);
  for (const Tensor* each : {&key, &value})
    if (enable_gqa) require_shared_heads(*each, query);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  if (dropout_p == 0) {
    const Tensor out = fused_attention({query, key, value, attn_mask, factor, is_causal, enable_gqa});
    if (out.defined()) return out;
    count_decomposition(query);
  }
  const Tensor keys = enable_gqa ? shared_heads(key, query) : key, values = enable_gqa ? shared_heads(value, query) : value;
  const Tensor scores = matmul(mul(query, factor), transpose(keys));
  return matmul(dropout(attention_weights(scores, attn_mask, is_causal), dropout_p), values);
}

Tensor rotary_embedding(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  require_floating("rotary_embedding", x);
  if (!x.rank() || x.size(-1) % 2)
    refuse("rotary_embedding", "x has shape " + x.shape().text() + ": expected a last axis of pairs");
  if (are_halves(x, cos, sin)) return rounded_once(x, rotary_embedding, x, cos, sin, interleaved);
  const int64_t d = x.size(-1), half = d / 2;
  const Tensor a = interleaved ? slice(x, -1, 0, d, 2) : slice(x, -1, 0, half);
  const Tensor b = interleaved ? slice(x, -1, 1, d, 2) : slice(x, -1, half, d);
  const Tensor first = sub(mul(a, cos), mul(b, sin)), second = add(mul(b, cos), mul(a, sin));
  if (!interleaved) return cat({first, second}, -1);
  Shape shape = first.shape();
  shape[shape.size() - 1] *= 2;
  return reshape(stack({first, second}, -1), shape);
}

}  // namespace plugrad
