#include <core/io/onnx/ops/attentions.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/attention.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/layers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/normalization.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <optional>

namespace plugrad::io::onnx {
namespace {

Tensor plus_bias(const Call& c, size_t i) { return c.has(i) ? add(c.tensor(0), c.tensor(i)) : c.tensor(0); }

Value quick_gelu(Call& c) {
  const Tensor& x = c.tensor(0);
  return c.like(mul(x, sigmoid(mul(x, c.real("alpha", 1.702)))));
}

// Normalises input + skip + bias, and also returns the sum as result 3.
Values skip_norm(Call& c, bool simplified) {
  Tensor x = add(c.tensor(0), c.tensor(1));
  const size_t bias = simplified ? 3 : 4;
  if (c.has(bias)) x = add(x, c.tensor(bias));
  const Shape shape{x.size(-1)};
  const double eps = c.real("epsilon", 1e-12);
  const Tensor y = simplified ? rms_norm(x, shape, c.tensor(2), eps) : layer_norm(x, shape, c.tensor(2), c.optional(3), eps);
  return {c.like(y), Value(), Value(), c.like(x)};
}

Values embedding_norm(Call& c) {
  const Tensor ids = cast(c.tensor(0), DType::i64);
  const int64_t length = ids.size(1);
  Tensor x = embedding(c.tensor(2), ids);
  x = add(x, c.has(8) ? embedding(c.tensor(3), cast(c.tensor(8), DType::i64)) : slice(c.tensor(3), 0, 0, length));
  if (c.has(4)) x = add(x, embedding(c.tensor(4), cast(c.tensor(1), DType::i64)));
  const Tensor y = layer_norm(x, {x.size(-1)}, c.tensor(5), c.tensor(6), c.real("epsilon", 1e-12));
  const Tensor lengths =
      c.has(7) ? cast(sum(cast(c.tensor(7), DType::i64), {1}), DType::i32) : zeros({ids.size(0)}, DType::i32, c.device());
  return {c.like(y, 2), lengths, c.like(x, 2)};
}

std::optional<double> scale_of(const Call& c) {
  const double given = c.real("scale", 0);
  return given == 0 ? std::nullopt : std::optional(given);
}

// Returns the keys that each batch may attend: from a mask (batch, keys), lengths (batch), or a mask (batch, queries, keys).
Tensor allowed_keys(const Call& c, const Tensor& mask, int64_t batch, int64_t keys) {
  if (mask.rank() == 1 && mask.size(0) == batch)
    return reshape(lt(reshape(c.arange(keys), {1, keys}), reshape(cast(mask, DType::i64), {batch, 1})), {batch, 1, 1, keys});
  if (mask.rank() == 2) return reshape(ne(mask, 0), {batch, 1, 1, mask.size(1)});
  if (mask.rank() == 3) return unsqueeze(ne(mask, 0), 1);
  throw Error(Code::unsupported, "a mask of the shape " + mask.shape().text() + " is not supported");
}

// Results of attention: y, and the keys and values with the past, stacked as (2, batch, heads, length, size).
Values contrib_attention(Call& c) {
  const int64_t heads = c.integer("num_heads", 0);
  const Tensor all = linear(c.tensor(0), transpose(c.tensor(1), 0, 1), c.optional(2));
  if (c.has_attribute("qkv_hidden_sizes")) throw Error(Code::unsupported, "qkv_hidden_sizes is not supported");
  const int64_t width = all.size(2) / 3;
  const auto part = [&](int64_t i) { return heads_first(slice(all, 2, i * width, (i + 1) * width), heads); };
  Tensor k = part(1), v = part(2);
  int64_t past = 0;
  if (c.has(4)) {
    past = c.tensor(4).size(3);
    k = cat({select(c.tensor(4), 0, 0), k}, 2);
    v = cat({select(c.tensor(4), 0, 1), v}, 2);
  }
  const int64_t batch = all.size(0), queries = all.size(1), keys = k.size(2);
  Tensor mask = c.has(3) ? allowed_keys(c, c.tensor(3), batch, keys) : Tensor();
  if (c.integer("unidirectional", 0)) {
    const Tensor causal = causal_mask(c, queries, keys, full({}, past, DType::i64, c.device()), -1, 0);
    mask = mask.defined() ? logical_and(mask, causal) : causal;
  }
  if (c.has(5)) mask = mask.defined() ? where(mask, c.tensor(5), -1e30) : c.tensor(5);
  Values results{c.like(heads_last(scaled_dot_product_attention(part(0), k, v, mask, 0, false, scale_of(c))))};
  if (c.wants(1)) results.push_back(c.like(stack({k, v}, 0)));
  return results;
}

// Attention of query, key and value (batch, length, hidden).
Values multi_head_attention(Call& c) {
  const int64_t heads = c.integer("num_heads", 0);
  if (!c.has(1) || !c.has(2) || c.rank(1) != 3) throw Error(Code::unsupported, "packed keys and values are not supported");
  Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2);
  if (c.has(3)) {
    const int64_t width = q.size(2);
    q = add(q, slice(c.tensor(3), 0, 0, width));
    k = add(k, slice(c.tensor(3), 0, width, 2 * width));
    v = add(v, slice(c.tensor(3), 0, 2 * width, 2 * width + v.size(2)));
  }
  q = heads_first(q, heads);
  k = heads_first(k, heads);
  v = heads_first(v, heads);
  const int64_t past = c.has(6) ? c.tensor(6).size(2) : 0;
  if (c.has(6)) k = cat({c.tensor(6), k}, 2);
  if (c.has(7)) v = cat({c.tensor(7), v}, 2);
  Tensor mask = c.has(4) ? allowed_keys(c, c.tensor(4), q.size(0), k.size(2)) : Tensor();
  if (c.integer("unidirectional", 0)) {
    const Tensor causal = causal_mask(c, q.size(2), k.size(2), full({}, past, DType::i64, c.device()), -1, 0);
    mask = mask.defined() ? logical_and(mask, causal) : causal;
  }
  if (c.has(5)) mask = mask.defined() ? where(mask, c.tensor(5), -1e30) : c.tensor(5);
  Values results{c.like(heads_last(scaled_dot_product_attention(q, k, v, mask, 0, false, scale_of(c))))};
  if (c.wants(1)) results.insert(results.end(), {c.like(k, 1), c.like(v, 2)});
  return results;
}

// Grouped-query attention with rotary positions. The past holds as many keys as the sequence before; seqlens_k holds, for
// each batch, the number of all keys minus 1.
Values grouped_query_attention(Call& c) {
  const int64_t heads = c.positive_attribute("num_heads", 0), kv_heads = c.positive_attribute("kv_num_heads", 0);
  Tensor q = c.tensor(0), k, v;
  if (c.has(1)) {
    k = c.tensor(1);
    v = c.tensor(2);
  } else {
    const int64_t size = q.size(2) / (heads + 2 * kv_heads);
    k = slice(q, 2, heads * size, (heads + kv_heads) * size);
    v = slice(q, 2, (heads + kv_heads) * size, (heads + 2 * kv_heads) * size);
    q = slice(q, 2, 0, heads * size);
  }
  q = heads_first(q, heads);
  k = heads_first(k, kv_heads);
  v = heads_first(v, kv_heads);
  const int64_t batch = q.size(0), queries = q.size(2), past = c.has(3) ? c.tensor(3).size(2) : 0, keys = past + queries;
  const Tensor lengths = reshape(add(cast(c.tensor(5), DType::i64), 1), {batch, 1});
  if (c.integer("do_rotary", 0)) {
    const Tensor first = queries == keys ? zeros({batch, 1}, DType::i64, c.device()) : sub(lengths, queries);
    const Tensor positions = add(clamp(first, 0), reshape(c.arange(queries), {1, queries}));
    const bool interleaved = c.integer("rotary_interleaved", 0);
    const auto turn = [&](const Tensor& x) {
      return transpose(rotated(transpose(x, 1, 2), c.tensor(7), c.tensor(8), positions, interleaved), 1, 2);
    };
    q = turn(q);
    k = turn(k);
  }
  if (c.has(3) && past) {
    k = cat({c.tensor(3), k}, 2);
    v = cat({c.tensor(4), v}, 2);
  }
  const int64_t window = c.integer("local_window_size", -1);
  const Tensor offset = full({}, past, DType::i64, c.device());
  Tensor mask = causal_mask(c, queries, keys, offset, window > 0 ? window - 1 : -1, 0);
  mask = logical_and(mask, reshape(lt(reshape(c.arange(keys), {1, keys}), lengths), {batch, 1, 1, keys}));
  if (c.real("softcap", 0) > 0) throw Error(Code::unsupported, "softcap is not supported here");
  const Tensor y = scaled_dot_product_attention(q, k, v, mask, 0, false, scale_of(c), heads != kv_heads);
  return {c.like(heads_last(y)), c.like(k, 0), c.like(v, 0)};
}

Value contrib_rotary(Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor position = cast(c.tensor(1), DType::i64), &cos = c.tensor(2), &sin = c.tensor(3);
  const bool flat = x.rank() == 3, interleaved = c.integer("interleaved", 0);
  const int64_t turned_size = c.integer("rotary_embedding_dim", 0);
  if (turned_size && turned_size != 2 * cos.size(1))
    throw Error(Code::invalid, "rotary_embedding_dim does not fit the caches");
  const int64_t size = c.integer("num_heads", 0) && flat ? x.size(2) / c.integer("num_heads", 0) : 2 * cos.size(1);
  if (size < 1) throw Error(Code::invalid, "num_heads does not fit the last axis");
  const Tensor parts = flat ? reshape(x, {x.size(0), x.size(1), x.size(2) / size, size}) : transpose(x, 1, 2);
  const int64_t length = parts.size(1);
  const Tensor places =
      position.count() == 1 ? add(reshape(position, {1, 1}), reshape(c.arange(length), {1, length})) : position;
  const Tensor turned = rotated(parts, cos, sin, places, interleaved);
  return c.like(flat ? reshape(turned, x.shape()) : transpose(turned, 1, 2));
}

constexpr Operator kContrib[] = {
    {"com.microsoft.Gelu", [](Call& c) { return c.like(gelu(c.tensor(0))); }},
    {"com.microsoft.FastGelu", [](Call& c) { return c.like(gelu(plus_bias(c, 1), Approximation::tanh)); }},
    {"com.microsoft.BiasGelu", [](Call& c) { return c.like(gelu(plus_bias(c, 1))); }},
    {"com.microsoft.QuickGelu", quick_gelu},
    {"com.microsoft.SkipLayerNormalization", [](Call& c) { return skip_norm(c, false); }},
    {"com.microsoft.SkipSimplifiedLayerNormalization", [](Call& c) { return skip_norm(c, true); }},
    {"com.microsoft.EmbedLayerNormalization", embedding_norm},
    {"com.microsoft.Attention", contrib_attention},
    {"com.microsoft.MultiHeadAttention", multi_head_attention},
    {"com.microsoft.GroupQueryAttention", grouped_query_attention},
    {"com.microsoft.RotaryEmbedding", contrib_rotary},
};
}  // namespace

std::span<const Operator> contrib_operators() { return kContrib; }

}  // namespace plugrad::io::onnx
