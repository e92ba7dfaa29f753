#include <core/io/onnx/ops/attentions.hpp>
#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/attention.hpp>
#include <plugrad/ops/convolution.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>
#include <limits>

namespace plugrad::io::onnx {

Tensor heads_first(const Tensor& x, int64_t heads) {
  if (heads < 1 || x.rank() != 3 || x.size(2) % heads) throw Error(Code::invalid, "the last axis does not hold the heads");
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}

Tensor heads_last(const Tensor& x) { return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), x.size(1) * x.size(3)}); }

Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions, bool interleaved) {
  const auto rows = [&](const Tensor& cache) {
    if (!positions.defined()) return cache;
    const Tensor found = index_select(cache, 0, reshape(positions, {positions.count()}));
    return reshape(found, {positions.rank() > 1 ? positions.size(0) : 1, positions.size(-1), cache.size(1)});
  };
  const Tensor c = rows(cos), s = rows(sin);
  const int64_t width = 2 * c.size(-1);
  const int last = x.rank() - 1;
  const Tensor part = width < x.size(last) ? slice(x, last, 0, width) : x;
  const Tensor turned = rotary_embedding(part, unsqueeze(c, c.rank() - 1), unsqueeze(s, s.rank() - 1), interleaved);
  return width < x.size(last) ? cat({turned, slice(x, last, width, x.size(last))}, last) : turned;
}

Tensor causal_mask(const Call& c, int64_t queries, int64_t keys, const Tensor& offset, int64_t before, int64_t after) {
  const Tensor place = add(reshape(c.arange(queries), {queries, 1}), offset);
  const Tensor distance = sub(place, reshape(c.arange(keys), {1, keys}));
  Tensor allowed;
  const auto also = [&](const Tensor& more) { allowed = allowed.defined() ? logical_and(allowed, more) : more; };
  if (after >= 0) also(ge(distance, -after));
  if (before >= 0) also(le(distance, before));
  return allowed;
}

namespace {

// Attention as its definition writes it: softmax(softcap(q k^T) + bias) v, for all forms that the fused op lacks.
struct Explicit {
  Tensor q, k, v, mask, allowed;  // mask: floating; allowed: booleans
  double scale = 1, softcap = 0;
  DType precision = DType::f32;
  int64_t output_mode = 0;
};
struct Attended {
  Tensor y, qk;
};
Attended attended(const Explicit& a) {
  const double infinity = std::numeric_limits<double>::infinity(), root = std::sqrt(a.scale);
  Tensor qk = matmul(mul(a.q, root), mul(transpose(a.k), root));
  Tensor shown = qk;
  if (a.softcap > 0) qk = mul(tanh(div(qk, a.softcap)), a.softcap);
  if (a.output_mode == 1) shown = qk;
  if (a.mask.defined()) qk = add(qk, a.mask);
  if (a.allowed.defined()) qk = where(a.allowed, qk, -infinity);
  if (a.output_mode == 2) shown = qk;
  Tensor weights = softmax(cast(qk, a.precision), -1);
  const Tensor none = eq(amax(qk, {-1}, true), -infinity);  // a query that attends nothing gives 0
  weights = cast(where(none, zeros_like(weights), weights), a.q.dtype());
  if (a.output_mode == 3) shown = weights;
  return {matmul(weights, a.v), shown};
}

Tensor repeated_heads(const Tensor& x, int64_t heads) {
  if (x.size(1) < 1 || heads % x.size(1)) throw Error(Code::invalid, "the heads of the keys do not divide the heads");
  return x.size(1) == heads ? x : repeat_interleave(x, heads / x.size(1), 1);
}

// A mask whose last axis is shorter than the keys forbids the rest.
Tensor whole_mask(const Tensor& mask, int64_t keys) {
  const int64_t lacks = keys - mask.size(-1);
  if (lacks <= 0) return mask;
  const bool boolean = mask.dtype() == DType::boolean;
  return pad(mask, {0, lacks}, boolean ? 0.0 : -std::numeric_limits<double>::infinity());
}

struct Masks {
  Tensor mask, allowed;
};
Masks masks_of(const Call& c, int64_t batch, int64_t queries, int64_t keys, int64_t past) {
  Masks found;
  if (c.has(3)) {
    const Tensor mask = whole_mask(c.tensor(3), keys);
    (mask.dtype() == DType::boolean ? found.allowed : found.mask) = mask;
  }
  const auto also = [&](const Tensor& more) {
    found.allowed = found.allowed.defined() ? logical_and(found.allowed, more) : more;
  };
  const bool causal = c.integer("is_causal", 0);
  const int64_t before = c.integer("left_window_size", -1), after = causal ? 0 : c.integer("right_window_size", -1);
  Tensor lengths;
  if (c.has(6)) lengths = reshape(cast(c.tensor(6), DType::i64), {batch, 1, 1, 1});
  if (before >= 0 || after >= 0) {
    const bool external = lengths.defined() && !c.has(4);
    const Tensor offset = external ? sub(lengths, queries) : full({}, past, DType::i64, c.device());
    also(causal_mask(c, queries, keys, offset, before, after));
  }
  if (lengths.defined()) also(lt(reshape(c.arange(keys), {1, 1, 1, keys}), lengths));
  return found;
}

Values attention(Call& c) {
  const bool flat = c.rank(0) == 3;
  const auto heads = [&](size_t i, const char* name) {
    return flat ? heads_first(c.tensor(i), c.integer(name, 0)) : c.tensor(i);
  };
  Explicit a;
  a.q = heads(0, "q_num_heads");
  Tensor k = heads(1, "kv_num_heads"), v = heads(2, "kv_num_heads");
  const int64_t past = c.has(4) ? c.tensor(4).size(2) : 0;
  if (c.has(4)) k = cat({c.tensor(4), k}, 2);
  if (c.has(5)) v = cat({c.tensor(5), v}, 2);
  const Masks masks = masks_of(c, a.q.size(0), a.q.size(2), k.size(2), past);
  a.mask = masks.mask;
  a.allowed = masks.allowed;
  a.scale = c.real("scale", 1 / std::sqrt(static_cast<double>(a.q.size(3))));
  a.softcap = c.real("softcap", 0);
  const bool plain = a.softcap <= 0 && !c.wants(3) && !a.allowed.defined() && !a.mask.defined() && a.q.dtype() == DType::f32;
  Attended found;
  if (plain) {
    found.y = scaled_dot_product_attention(a.q, k, v, {}, 0, false, a.scale, a.q.size(1) != k.size(1));
  } else {
    a.k = repeated_heads(k, a.q.size(1));
    a.v = repeated_heads(v, a.q.size(1));
    a.output_mode = c.integer("qk_matmul_output_mode", 0);
    const int64_t precision = c.integer("softmax_precision", 0);
    a.precision = precision ? carrier_of(static_cast<ElementType>(precision)) : a.q.dtype();
    found = attended(a);
  }
  Values results{c.like(flat ? heads_last(found.y) : found.y)};
  if (c.wants(1) || c.wants(2) || c.wants(3)) {
    results.push_back(c.like(k, 1));
    results.push_back(c.like(v, 2));
  }
  if (c.wants(3)) results.push_back(c.like(found.qk));
  return results;
}

Value rotary(Call& c) {
  const Tensor& x = c.tensor(0);
  const bool flat = x.rank() == 3;
  const int64_t heads = c.integer("num_heads", 0);
  if (flat && heads < 1) throw Error(Code::invalid, "num_heads is missing");
  const Tensor parts = flat ? reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}) : transpose(x, 1, 2);
  const Tensor turned = rotated(parts, c.tensor(1), c.tensor(2), c.optional(3), c.integer("interleaved", 0));
  return c.like(flat ? reshape(turned, x.shape()) : transpose(turned, 1, 2));
}

Value gated_linear_unit(Call& c) {
  const Tensor& a = c.tensor(0);
  return c.like(mul(mul(a, sigmoid(mul(a, c.real("alpha", 1)))), c.tensor(1)));
}

// A depthwise convolution along the last axis that continues from the inputs before.
Values causal_convolution(Call& c) {
  const Tensor &x = c.tensor(0), &weight = c.tensor(1);
  const int64_t channels = x.size(1), before = weight.size(2) - 1;
  const Tensor past = c.has(3) ? c.tensor(3) : zeros({x.size(0), channels, before}, x.dtype(), c.device());
  const Tensor whole = cat({past, x}, 2);
  Tensor y = conv1d(whole, weight, c.optional(2), {1}, {0}, {1}, channels);
  const std::string activation = c.text("activation", "none");
  if (activation == "silu" || activation == "swish") y = silu(y);
  else if (activation != "none")
    throw Error(Code::invalid, "the activation '" + activation + "' is not none, silu or swish");
  return {c.like(y), c.like(slice(whole, 2, whole.size(2) - before, whole.size(2)))};
}

// Recurrent attention with a state (batch, heads, keys, values) instead of keys and values: each step decays the state,
// corrects the value by what the state holds of the key, adds key x value, and reads query x state.
Values linear_attention(Call& c) {
  const int64_t heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  const auto f32_heads = [&](size_t i, int64_t n) { return heads_first(cast(c.tensor(i), DType::f32), n); };
  const Tensor q = f32_heads(0, heads), k = f32_heads(1, kv_heads), v = f32_heads(2, kv_heads);
  const int64_t batch = q.size(0), length = q.size(2), keys = k.size(3);
  const Tensor decay = c.has(4) ? exp(f32_heads(4, kv_heads)) : Tensor();
  const Tensor beta = c.has(5) ? f32_heads(5, c.tensor(5).size(2)) : Tensor();
  const double given = c.real("scale", 0), scale = given == 0 ? 1 / std::sqrt(static_cast<double>(keys)) : given;
  Tensor state =
      c.has(3) ? cast(c.tensor(3), DType::f32) : zeros({batch, kv_heads, keys, v.size(3)}, DType::f32, c.device());
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < length; ++t) {
    const auto at = [&](const Tensor& x) { return slice(x, 2, t, t + 1); };  // (batch, heads, 1, size)
    if (decay.defined()) state = mul(state, transpose(at(decay)));
    Tensor value = at(v);
    if (beta.defined()) value = mul(at(beta), sub(value, matmul(at(k), state)));
    state = add(state, mul(transpose(at(k)), value));
    steps.push_back(mul(matmul(at(q), repeated_heads(state, heads)), scale));
  }
  return {c.like(heads_last(cat(steps, 2))), c.like(state, c.has(3) ? 3 : 0)};
}

constexpr Operator kAttention[] = {
    {"Attention", attention},
    {"RotaryEmbedding", rotary},
    {"SwiGLU", gated_linear_unit},
    {"CausalConvWithState", causal_convolution},
    {"LinearAttention", linear_attention},
};
}  // namespace

std::span<const Operator> attention_operators() { return kAttention; }

}  // namespace plugrad::io::onnx
