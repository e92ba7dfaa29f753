#include <plugrad/nn/attention.hpp>

#include <plugrad/nn/init.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/attention.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>
#include <limits>

namespace plugrad::nn {
namespace {
constexpr double kNever = -std::numeric_limits<double>::infinity();

[[noreturn]] void refuse_heads(const std::string& why) { throw Error(Code::invalid, "[multihead_attention] " + why); }

Tensor projection(int64_t out, int64_t in, const MultiheadAttentionOptions& options) {
  return init::xavier_uniform_(zeros({out, in}, options.dtype, options.device)).requires_grad_();
}

// Returns a mask to add to scores: -inf where a mask of bool is true.
Tensor added(const Tensor& mask, const Tensor& like) {
  if (mask.dtype() != DType::boolean) return cast(mask, like.dtype());
  return where(mask, kNever, zeros({}, like.dtype(), like.device()));
}
}  // namespace

// --- The function.

namespace {
// x (n, l, e) as (n, heads, l, e / heads).
Tensor split_heads(const Tensor& x, int64_t heads) { return transpose(unflatten(x, -1, {heads, x.size(-1) / heads}), 1, 2); }

// Rows part e .. (part + 1) e, of three parts.
Tensor third(const Tensor& x, int64_t part) {
  const int64_t extent = x.size(0) / 3;
  return slice(x, 0, part * extent, (part + 1) * extent);
}

// The projection of x for a part: 0 query, 1 key, 2 value.
Tensor projected(const Tensor& x, int64_t part, const AttentionWeights& weights) {
  const Tensor* const separate[] = {&weights.q_proj_weight, &weights.k_proj_weight, &weights.v_proj_weight};
  const Tensor weight = weights.in_proj_weight.defined() ? third(weights.in_proj_weight, part) : *separate[part];
  return linear(x, weight, weights.in_proj_bias.defined() ? third(weights.in_proj_bias, part) : Tensor());
}

struct Projections {
  Tensor query, key, value;
};
// Self-attention needs a single product for query, key and value.
Projections project(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionWeights& weights) {
  if (!weights.in_proj_weight.defined() || !query.is_same(key) || !key.is_same(value))
    return {projected(query, 0, weights), projected(key, 1, weights), projected(value, 2, weights)};
  const Tensor all = linear(query, weights.in_proj_weight, weights.in_proj_bias);
  const int64_t e = all.size(-1) / 3;
  return {slice(all, -1, 0, e), slice(all, -1, e, 2 * e), slice(all, -1, 2 * e, 3 * e)};
}

// The sum of all masks, broadcast to (n, heads, l, s), or an undefined tensor.
Tensor joined_mask(const AttentionOptions& options, const Tensor& q, int64_t keys) {
  const int64_t n = q.size(0), heads = q.size(1), l = q.size(2);
  Tensor mask;
  if (options.attn_mask.defined()) {
    mask = added(options.attn_mask, q);
    if (mask.rank() == 3) mask = reshape(mask, {n, heads, l, keys});
  } else if (options.is_causal && (options.need_weights || options.key_padding_mask.defined())) {
    mask = added(triu(ones({l, keys}, DType::boolean, q.device()), 1), q);
  }
  if (!options.key_padding_mask.defined()) return mask;
  const Tensor padding = reshape(added(options.key_padding_mask, q), {n, 1, 1, keys});
  return mask.defined() ? add(mask, padding) : padding;
}

// Returns the softmax of the last axis; 0 in rows of -infinity alone, as scaled_dot_product_attention.
Tensor masked_softmax(const Tensor& scores) {
  const Tensor sees = gt(amax(scores.detach(), {-1}, true), -std::numeric_limits<double>::infinity());
  return where(sees, softmax(where(sees, scores, 0), -1), 0);
}

// The heads' results (n, heads, l, e), and their weights if they are needed.
Attention weighted(const Projections& heads, const Tensor& mask, const AttentionOptions& options, double p) {
  const auto& [q, k, v] = heads;
  if (!options.need_weights)
    return {scaled_dot_product_attention(q, k, v, mask, p, options.is_causal && !mask.defined()), {}};
  const Tensor scores = matmul(mul(q, 1 / std::sqrt(static_cast<double>(q.size(-1)))), transpose(k));
  const Tensor weights = dropout(mask.defined() ? masked_softmax(add(scores, mask)) : softmax(scores, -1), p, p > 0);
  return {matmul(weights, v), options.average_attn_weights ? mean(weights, {1}) : weights};
}

void require_ranks(const Tensor& query, const Tensor& key, const Tensor& value) {
  if (!query.defined() || !key.defined() || !value.defined()) refuse_heads("a tensor is undefined");
  if (query.rank() < 2 || query.rank() > 3 || key.rank() != query.rank() || value.rank() != query.rank())
    refuse_heads("query is " + query.shape().text() + ", key " + key.shape().text() + " and value " + value.shape().text() +
                 ": expected rank 3, or 2 without a batch");
}
}  // namespace

Attention multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t num_heads,
                               const AttentionWeights& weights, const AttentionOptions& options, double dropout_p,
                               bool batch_first) {
  require_ranks(query, key, value);
  const bool batched = query.rank() == 3;
  const auto n_first = [&](const Tensor& x) { return !batched ? unsqueeze(x, 0) : batch_first ? x : transpose(x, 0, 1); };
  AttentionOptions how = options;
  if (!batched && how.key_padding_mask.defined()) how.key_padding_mask = unsqueeze(how.key_padding_mask, 0);
  const Tensor q = n_first(query), k = key.is_same(query) ? q : n_first(key), v = value.is_same(key) ? k : n_first(value);
  const Projections all = project(q, k, v, weights);
  const Projections heads{split_heads(all.query, num_heads), split_heads(all.key, num_heads),
                          split_heads(all.value, num_heads)};
  const Attention joined = weighted(heads, joined_mask(how, heads.query, k.size(1)), how, dropout_p);
  const Tensor out = linear(flatten(transpose(joined.output, 1, 2), 2), weights.out_proj_weight, weights.out_proj_bias);
  if (!batched) return {squeeze(out, {0}), joined.weights.defined() ? squeeze(joined.weights, {0}) : Tensor()};
  return {batch_first ? out : transpose(out, 0, 1), joined.weights};
}

// --- The modules.

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options)
    : out_proj(embed_dim, embed_dim, options.bias, options.dtype, options.device), embed_dim_(embed_dim),
      num_heads_(num_heads), options_(options) {
  if (num_heads < 1 || embed_dim % num_heads)
    refuse_heads(std::to_string(num_heads) + " heads do not divide embed_dim " + std::to_string(embed_dim));
  const int64_t kdim = options.kdim ? options.kdim : embed_dim, vdim = options.vdim ? options.vdim : embed_dim;
  if (kdim == embed_dim && vdim == embed_dim) {
    in_proj_weight = projection(3 * embed_dim, embed_dim, options);
  } else {
    q_proj_weight = projection(embed_dim, embed_dim, options);
    k_proj_weight = projection(embed_dim, kdim, options);
    v_proj_weight = projection(embed_dim, vdim, options);
  }
  if (!options.bias) return;
  in_proj_bias = zeros({3 * embed_dim}, options.dtype, options.device).requires_grad_();
  init::zeros_(out_proj.bias);
}

void MultiheadAttention::members(Members& all) {
  all("in_proj_weight", in_proj_weight), all("q_proj_weight", q_proj_weight);
  all("k_proj_weight", k_proj_weight), all("v_proj_weight", v_proj_weight);
  all("in_proj_bias", in_proj_bias), all("out_proj", out_proj);
}

std::string MultiheadAttention::detail() const { return std::to_string(embed_dim_) + ", " + std::to_string(num_heads_); }

Attention MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const AttentionOptions& options) const {
  return multi_head_attention(
      query, key, value, num_heads_,
      {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias}, options,
      training() ? options_.dropout : 0, options_.batch_first);
}

Tensor MultiheadAttention::forward(const Tensor& x) const { return attend(x, x, x, {.need_weights = false}).output; }

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerEncoderLayerOptions& options)
    : self_attn(d_model, nhead,
                {.dropout = options.dropout,
                 .bias = options.bias,
                 .batch_first = options.batch_first,
                 .dtype = options.dtype,
                 .device = options.device}),
      linear1(d_model, options.dim_feedforward, options.bias, options.dtype, options.device),
      linear2(options.dim_feedforward, d_model, options.bias, options.dtype, options.device),
      norm1({d_model},
            {.eps = options.layer_norm_eps, .bias = options.bias, .dtype = options.dtype, .device = options.device}),
      norm2({d_model},
            {.eps = options.layer_norm_eps, .bias = options.bias, .dtype = options.dtype, .device = options.device}),
      options_(options) {}

void TransformerEncoderLayer::members(Members& all) {
  all("self_attn", self_attn), all("linear1", linear1), all("linear2", linear2), all("norm1", norm1), all("norm2", norm2);
}

Tensor TransformerEncoderLayer::attended(const Tensor& x, const AttentionOptions& options) const {
  return dropout(self_attn.attend(x, x, x, options).output, options_.dropout, training());
}

Tensor TransformerEncoderLayer::fed_forward(const Tensor& x) const {
  const Tensor hidden = options_.activation ? options_.activation(linear1(x)) : relu(linear1(x));
  return dropout(linear2(dropout(hidden, options_.dropout, training())), options_.dropout, training());
}

Tensor TransformerEncoderLayer::encode(const Tensor& x, AttentionOptions options) const {
  options.need_weights = false;
  if (options_.norm_first) {
    const Tensor y = add(x, attended(norm1(x), options));
    return add(y, fed_forward(norm2(y)));
  }
  const Tensor y = norm1(add(x, attended(x, options)));
  return norm2(add(y, fed_forward(y)));
}

}  // namespace plugrad::nn
