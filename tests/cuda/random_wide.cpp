// Steps of functions that are composed of other functions. Functions that are not continuous (order, comparisons, rounding,
// whole numbers) get numbers that are exact on every device, so that rounding cannot cause large differences.
#include <tests/cuda/random_kinds.hpp>

#include <plugrad/plugrad.hpp>

namespace plugrad::test {
namespace {

// A result with one more axis in front, of two elements.
std::optional<Step> draw_doubled(const Steps& steps, Random& random) {
  const int a = pick(steps, random);
  Shape shape{2};
  for (const int64_t extent : shape_at(steps, a)) shape.push_back(extent);
  return made(a, shape);
}

int axis_of(S s) { return static_cast<int>(s.numbers[0]); }
// x in the shape (n, c, l).
Tensor batches(T x) { return reshape(x, {-1, x.size(-2), x.size(-1)}); }
Tensor like(T y, T x) { return reshape(y, x.shape()); }

Tensor convolved(S s, T x) {
  const int64_t c = x.size(-2);
  const Tensor weight = eighths(s, {c, c, 3}, x) * (1 + 0.25 * tanh(mean(x))) * (1 / static_cast<double>(c));
  return like(conv1d(batches(x), weight, eighths(s, {c}, x), {1}, {1}), x);
}
Tensor convolved_in_a_plane(S s, T x) {
  const Tensor images = reshape(x, {-1, 1, x.size(-2), x.size(-1)});
  return like(conv2d(images, eighths(s, {1, 1, 3, 3}, x) * 0.5, {}, {1}, {1}), x);
}
Tensor upsampled_and_back(S s, T x) {
  const Tensor images = reshape(x, {-1, 1, x.size(-2), x.size(-1)});
  return like(avg_pool2d(conv_transpose2d(images, eighths(s, {1, 1, 2, 2}, x), {}, {2}), {2}), x);
}
Tensor attended(T x) {
  const Tensor rows = tanh(batches(x));
  return like(scaled_dot_product_attention(rows, rows, 0.5 * rows, {}, 0, true), x);
}
Tensor normalised_channels(T x) { return like(batch_norm(batches(x), {}, {}, {}, {}, x.count() > x.size(-2), 0.1, 0.5), x); }
Tensor rows_of_table(S s, T x) {
  const Tensor table = reshape(x, {x.size(0), -1});
  return like(embedding(table, remainder(whole(s, {x.size(0)}, x), x.size(0))), x);
}
Tensor windows(T x) { return mean(unfold(cat({x, slice(x, -1, 0, 1)}, -1), -1, 2, 1), {-1}); }
Tensor probabilities(T x) { return 0.25 + 0.5 * sigmoid(x); }
Tensor split_and_joined(T x) {
  std::vector<Tensor> parts = split(x, 2, -1);
  std::reverse(parts.begin(), parts.end());
  return cat(parts, -1);
}
Tensor sorted_places(S s, T x) { return times(x, argmax(whole(s, x), {-1}, true)); }

constexpr StepKind kActivations[] = {
    {"silu", draw_same, [](S, T a, T) { return silu(a); }},
    {"gelu", draw_same, [](S, T a, T) { return gelu(a); }},
    {"gelu by tanh", draw_same, [](S, T a, T) { return gelu(a, Approximation::tanh); }},
    {"softplus", draw_same, [](S, T a, T) { return softplus(a); }},
    {"leaky_relu", draw_same, [](S, T a, T) { return leaky_relu(a, 0.25); }},
    {"elu", draw_same, [](S, T a, T) { return elu(a); }},
    {"hardtanh", draw_same, [](S, T a, T) { return hardtanh(a, -1.5, 1.25); }},
    {"clamp", draw_same, [](S, T a, T) { return clamp(a, -1.25, 1.5); }},
    {"erf", draw_same, [](S, T a, T) { return erf(a); }},
    {"expm1 of tanh", draw_same, [](S, T a, T) { return expm1(tanh(a)); }},
    {"log1p of square", draw_same, [](S, T a, T) { return log1p(square(a)); }},
    {"log2 of 2 + tanh", draw_same, [](S, T a, T) { return log2(2 + tanh(a)); }},
    {"exp2 of tanh", draw_same, [](S, T a, T) { return exp2(tanh(a)); }},
    {"rsqrt of 1 + x^2", draw_same, [](S, T a, T) { return rsqrt(1 + square(a)); }},
    {"reciprocal of 2 + tanh", draw_same, [](S, T a, T) { return reciprocal(2 + tanh(a)); }},
    {"sin", draw_same, [](S, T a, T) { return sin(tanh(a) * 3); }},
    {"cos", draw_same, [](S, T a, T) { return cos(tanh(a) * 3); }},
    {"tan of tanh", draw_same, [](S, T a, T) { return tan(tanh(a)); }},
    {"atan", draw_same, [](S, T a, T) { return atan(a); }},
    {"asinh", draw_same, [](S, T a, T) { return asinh(a); }},
    {"sinh of tanh", draw_same, [](S, T a, T) { return sinh(tanh(a)); }},
    {"atan2", draw_pair, [](S, T a, T b) { return atan2(a, 2 + tanh(b)); }},
    {"softmax", draw_axis, [](S s, T a, T) { return softmax(a, axis_of(s)) * 4; }},
    {"cumsum", draw_axis, [](S s, T a, T) { return cumsum(a, axis_of(s)) * 0.25; }},
    {"cumprod of 1 + tanh / 8", draw_axis, [](S s, T a, T) { return cumprod(1 + 0.125 * tanh(a), axis_of(s)); }},
    {"logsumexp", draw_reduction, [](S s, T a, T) { return logsumexp(a, axes_of(s), s.numbers[0]); }},
    {"var", draw_reduction, [](S s, T a, T) { return var(tanh(a), axes_of(s), s.numbers[0], 0); }},
    {"norm of 2 + tanh", draw_reduction, [](S s, T a, T) { return norm(2 + tanh(a), 2, axes_of(s), s.numbers[0]) * 0.25; }},
    {"prod of 1 + tanh / 8", draw_reduction,
     [](S s, T a, T) { return prod(1 + 0.125 * tanh(a), axes_of(s), s.numbers[0]); }},
    {"max of ordered", draw_seeded, [](S s, T a, T) { return a * max(ordered(s, a)); }},
    {"einsum", draw_matmul, [](S, T a, T) { return einsum("...ij,...kj->...ik", {tanh(a), a}) * 0.25; }},
    {"mse_loss", draw_pair,
     [](S s, T a, T b) { return mse_loss(expand(a, s.shape), expand(b, s.shape), Reduction::none) * 0.25; }},
    {"l1_loss", draw_same, [](S, T a, T) { return l1_loss(a, tanh(a) * 0.5, Reduction::none); }},
    {"huber_loss", draw_pair,
     [](S s, T a, T b) { return huber_loss(expand(a, s.shape), expand(b, s.shape), Reduction::none); }},
    {"binary cross-entropy", draw_pair,
     [](S s, T a, T b) {
       const Tensor target = probabilities(expand(b, s.shape));
       return binary_cross_entropy_with_logits(expand(a, s.shape), target, {}, {}, Reduction::none);
     }},
    {"kl_div", draw_same, [](S, T a, T) { return kl_div(a, probabilities(a), Reduction::none); }},
};

constexpr StepKind kFurther[] = {
    {"mish", draw_same, [](S, T a, T) { return mish(a); }},
    {"selu", draw_same, [](S, T a, T) { return selu(a); }},
    {"celu", draw_same, [](S, T a, T) { return celu(a, 1.5); }},
    {"softsign", draw_same, [](S, T a, T) { return softsign(a); }},
    {"tanhshrink", draw_same, [](S, T a, T) { return tanhshrink(a); }},
    {"logsigmoid", draw_same, [](S, T a, T) { return logsigmoid(a); }},
    {"relu6", draw_same, [](S, T a, T) { return relu6(a); }},
    {"hardswish", draw_same, [](S, T a, T) { return hardswish(a); }},
    {"softshrink", draw_same, [](S, T a, T) { return softshrink(a, 0.25); }},
    {"glu", draw_line, [](S, T a, T) { return glu(cat({a, tanh(a)}, -1)); }},
    {"lerp", draw_pair, [](S, T a, T b) { return lerp(a, tanh(b), 0.25); }},
    {"logaddexp", draw_pair, [](S, T a, T b) { return logaddexp(a, b); }},
    {"hypot", draw_pair, [](S, T a, T b) { return hypot(1 + tanh(a), 2 + tanh(b)); }},
    {"copysign", draw_seeded, [](S s, T a, T) { return copysign(1 + square(a), eighths(s, a) + 0.0625); }},
    {"smooth_l1_loss", draw_pair,
     [](S s, T a, T b) { return smooth_l1_loss(expand(a, s.shape), expand(b, s.shape), Reduction::none, 0.5); }},
    {"soft_margin_loss", draw_seeded,
     [](S s, T a, T) { return soft_margin_loss(a, sign(eighths(s, a) + 0.0625), Reduction::none); }},
    {"binary cross-entropy of probabilities", draw_same,
     [](S, T a, T) { return binary_cross_entropy(probabilities(a), probabilities(-a), {}, Reduction::none); }},
    {"cosine similarity", draw_line,
     [](S, T a, T) { return a * unsqueeze(cosine_similarity(2 + tanh(a), 1 + tanh(-a), -1), -1); }},
};

constexpr StepKind kNetworks[] = {
    {"layer_norm", draw_line, [](S, T a, T) { return layer_norm(a, {a.size(-1)}, {}, {}, 0.5); }},
    {"rms_norm", draw_line, [](S, T a, T) { return rms_norm(a, {a.size(-1)}, {}, 0.5); }},
    {"batch_norm", draw_plane, [](S, T a, T) { return a.count() > a.size(-2) ? normalised_channels(a) : a * 1; }},
    {"group_norm", draw_plane, [](S, T a, T) { return like(group_norm(batches(a), 1, {}, {}, 0.5), a); }},
    {"avg_pool1d", draw_plane, [](S, T a, T) { return like(avg_pool1d(batches(a), {3}, {1}, {1}), a); }},
    {"max_pool1d", draw_plane, [](S s, T a, T) { return like(max_pool1d(batches(ordered(s, a)), {3}, {1}, {1}), a); }},
    {"conv1d", draw_plane, [](S s, T a, T) { return convolved(s, a); }},
    {"conv2d", draw_plane, [](S s, T a, T) { return convolved_in_a_plane(s, a); }},
    {"conv_transpose2d", draw_plane, [](S s, T a, T) { return upsampled_and_back(s, a); }},
    {"attention", draw_plane, [](S, T a, T) { return attended(a); }},
    {"linear", draw_line, [](S s, T a, T) { return linear(a, eighths(s, {a.size(-1), a.size(-1)}, a)) * 0.25; }},
    {"embedding", draw_line, [](S s, T a, T) { return rows_of_table(s, a); }},
    {"tril", draw_plane, [](S, T a, T) { return tril(a, 1); }},
    {"triu", draw_plane, [](S, T a, T) { return triu(a); }},
    {"masked_fill", draw_seeded, [](S s, T a, T) { return masked_fill(a, mask(s, a), 0.5); }},
    {"where by a mask", draw_seeded, [](S s, T a, T) { return where(mask(s, a), a, tanh(a)); }},
    {"flip", draw_line, [](S, T a, T) { return flip(a, {-1}); }},
    {"roll", draw_line, [](S s, T a, T) { return roll(a, {s.numbers[0] % 5}, {0}); }},
    {"movedim and back", draw_plane, [](S, T a, T) { return contiguous(movedim(movedim(a, {0}, {-1}) * 0.5, {-1}, {0})); }},
    {"stack", draw_doubled, [](S, T a, T) { return stack({a, tanh(a)}); }},
    {"split and cat", draw_line, [](S, T a, T) { return split_and_joined(a); }},
    {"windows", draw_line, [](S, T a, T) { return windows(a); }},
    {"pad and slice", draw_line, [](S, T a, T) { return slice(pad(a, {2, 1}, 0.5), -1, 1, a.size(-1) + 1); }},
};

constexpr StepKind kJumps[] = {
    {"order of ordered", draw_line, [](S s, T a, T) { return times(a, argmax(ordered(s, a), {-1}, true)); }},
    {"argmax of whole", draw_line, [](S s, T a, T) { return sorted_places(s, a); }},
    {"floor", draw_seeded, [](S s, T a, T) { return a * floor(eighths(s, a) * 3); }},
    {"round", draw_seeded, [](S s, T a, T) { return a + round(eighths(s, a) * 4); }},
    {"sign and trunc", draw_seeded, [](S s, T a, T) { return a * (sign(eighths(s, a)) + trunc(eighths(s, a))); }},
    {"compare whole", draw_seeded, [](S s, T a, T) { return times(a, add(ge(whole(s, a), 2), 1)); }},
    {"logic", draw_seeded, [](S s, T a, T) { return where(logical_xor(mask(s, a), lt(whole(s, a), 4)), a, 0.25 * a); }},
    {"floor_divide", draw_seeded, [](S s, T a, T) { return times(a, floor_divide(whole(s, a), 3)); }},
    {"remainder", draw_seeded, [](S s, T a, T) { return times(a, remainder(whole(s, a), 5)); }},
    {"fmod of eighths", draw_seeded, [](S s, T a, T) { return a + fmod(eighths(s, a), 0.5); }},
    {"bits", draw_seeded, [](S s, T a, T) { return times(a, bitwise_xor(bitwise_and(whole(s, a), 6), 3)); }},
    {"shifts", draw_seeded,
     [](S s, T a, T) { return times(a, bitwise_right_shift(bitwise_left_shift(whole(s, a), 2), 1)); }},
    {"integer power", draw_seeded, [](S s, T a, T) { return times(a, remainder(pow(whole(s, a), 3), 7)); }},
    {"sum of whole", draw_line, [](S s, T a, T) { return times(a, remainder(cumsum(whole(s, a), -1), 9)); }},
    {"through i32", draw_seeded, [](S s, T a, T) { return times(a, cast(whole(s, a), DType::i32)); }},
    {"through u8", draw_seeded, [](S s, T a, T) { return times(a, remainder(cast(whole(s, a), DType::u8), 8)); }},
    {"through f16", draw_seeded, [](S s, T a, T) { return a + cast(cast(eighths(s, a), DType::f16), a.dtype()); }},
    {"through bf16", draw_seeded, [](S s, T a, T) { return a - cast(cast(eighths(s, a), DType::bf16), a.dtype()); }},
    {"count_nonzero", draw_seeded, [](S s, T a, T) { return a * remainder(count_nonzero(whole(s, a)), 4); }},
    {"any and all", draw_line, [](S s, T a, T) { return where(any(mask(s, a), {-1}, true), a, all(mask(s, a))); }},
};
}  // namespace

std::span<const StepKind> wide_kinds() {
  static const std::vector<StepKind>& kinds = *[] {
    auto* all = new std::vector<StepKind>;
    using Table = std::span<const StepKind>;
    for (const Table some : {Table(kActivations), Table(kFurther), Table(kNetworks), Table(kJumps), place_kinds()})
      all->insert(all->end(), some.begin(), some.end());
    return all;
  }();
  return kinds;
}

}  // namespace plugrad::test
