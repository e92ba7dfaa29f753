// Compares attention and rotary embeddings with plain loops.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
constexpr double kInf = HUGE_VAL;
constexpr int64_t kL = 3, kS = 4, kE = 2, kV = 3;

using Values = std::vector<double>;
double at(const Values& x, int64_t row, int64_t column, int64_t columns) {
  return x[static_cast<size_t>(row * columns + column)];
}

// One head: q (l, e), k (s, e), v (s, v); `added` is added to the scores.
Values attended(const Values& q, const Values& k, const Values& v, const Values& added, double scale) {
  Values out;
  for (int64_t i = 0; i < kL; ++i) {
    Values weights;
    double total = 0;
    for (int64_t j = 0; j < kS; ++j) {
      double score = at(added, i, j, kS);
      for (int64_t e = 0; e < kE; ++e) score += scale * at(q, i, e, kE) * at(k, j, e, kE);
      weights.push_back(std::exp(score));
      total += weights.back();
    }
    for (int64_t c = 0; c < kV; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < kS; ++j) sum += total ? weights[static_cast<size_t>(j)] / total * at(v, j, c, kV) : 0;
      out.push_back(sum);
    }
  }
  return out;
}

TEST(Attention, EqualsPlainLoopsUnderEachMask) {
  const Values q = spread(kL * kE, -1, 1), k = spread(kS * kE, -2, 1), v = spread(kS * kV, -1, 3);
  const Tensor query = f64(q, {kL, kE}), key = f64(k, {kS, kE}), value = f64(v, {kS, kV});
  const double scale = 1 / std::sqrt(2.0);
  const Values none(kL * kS), some = {0, -kInf, 0, 0, -kInf, -kInf, -kInf, -kInf, 1, 2, -kInf, -1};
  EXPECT_TRUE(close(scaled_dot_product_attention(query, key, value), {kL, kV}, attended(q, k, v, none, scale), 1e-14));
  EXPECT_TRUE(close(scaled_dot_product_attention(query, key, value, f64(some, {kL, kS})), {kL, kV},
                    attended(q, k, v, some, scale), 1e-14));
  EXPECT_TRUE(close(scaled_dot_product_attention(query, key, value, {}, 0, false, 0.5), {kL, kV},
                    attended(q, k, v, none, 0.5), 1e-14));
  Values causal, seen, hidden;
  for (int64_t i = 0; i < kL * kS; ++i) causal.push_back(i % kS <= i / kS ? 0 : -kInf);
  for (int64_t i = 0; i < kL * kS; ++i) seen.push_back(i / kS != 1 && i % 3), hidden.push_back(seen.back() ? 0 : -kInf);
  EXPECT_TRUE(close(scaled_dot_product_attention(query, key, value, {}, 0, true), {kL, kV}, attended(q, k, v, causal, scale),
                    1e-14));
  EXPECT_TRUE(close(scaled_dot_product_attention(query, key, value, of(DType::boolean, seen, {kL, kS})), {kL, kV},
                    attended(q, k, v, hidden, scale), 1e-14));
}

TEST(Attention, HeadsBroadcastOrAreShared) {
  const Values q = spread(4 * kL * kE, -1, 1), k = spread(2 * kS * kE, -2, 1), v = spread(2 * kS * kV, -1, 3);
  const Tensor query = f64(q, {1, 4, kL, kE}), key = f64(k, {1, 2, kS, kE}), value = f64(v, {1, 2, kS, kV});
  Values expected;
  const auto head = [](const Values& x, size_t i, size_t n) { return Values(&x[i * n], &x[i * n] + n); };
  for (size_t i = 0; i < 4; ++i) {
    const auto one = attended(head(q, i, kL * kE), head(k, i / 2, kS * kE), head(v, i / 2, kS * kV), Values(kL * kS), 0.25);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  EXPECT_TRUE(
      close(scaled_dot_product_attention(query, key, value, {}, 0, false, 0.25, true), {1, 4, kL, kV}, expected, 1e-14));
  const Tensor repeated = repeat_interleave(key, 2, 1);
  EXPECT_TRUE(close(scaled_dot_product_attention(query, repeated, repeat_interleave(value, 2, 1), {}, 0, false, 0.25),
                    {1, 4, kL, kV}, expected, 1e-14));
  EXPECT_TRUE(close(scaled_dot_product_attention(zeros({0, 2, 3}), zeros({0, 4, 3}), zeros({0, 4, 5})), {0, 2, 5}, {}));
}

// Attention composed of other ops, for operands with the same number of heads.
Tensor composed(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  return matmul(softmax(mul(matmul(query, transpose(key)), 0.25) + mask, -1), value);
}
Tensor lower_triangle(int64_t l, int64_t s) {
  return where(tril(ones({l, s}, DType::boolean)), 0, full({}, -kInf, DType::f64));
}

// Rows longer than the blocks of any kernel, with groups of heads, with a mask and with the causal triangle.
TEST(Attention, LongRowsAndTheirGradientsEqualThoseOfPlainOps) {
  const auto leaf = [](const Shape& shape, double low) {
    return of(DType::f64, spread(shape.count(), low, 1), shape).requires_grad_();
  };
  const Tensor mask = of(DType::f64, spread(100 * 300, -2, 2), {100, 300});
  const Tensor query = leaf({2, 4, 100, 8}, -1), key = leaf({2, 2, 300, 8}, -1.5), value = leaf({2, 2, 300, 5}, -2);
  const auto repeated = [](const Tensor& x) { return repeat_interleave(x, 2, 1); };
  for (const bool causal : {false, true}) {
    const Tensor out = scaled_dot_product_attention(query, key, value, causal ? Tensor() : mask, 0, causal, 0.25, true);
    const Tensor expected = composed(query, repeated(key), repeated(value), causal ? lower_triangle(100, 300) : mask);
    EXPECT_TRUE(close(out, expected.shape(), elements(expected), 1e-12)) << causal;
    const auto found = grad({sum(out * out)}, {query, key, value});
    const auto wanted = grad({sum(expected * expected)}, {query, key, value});
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(close(found[i], wanted[i].shape(), elements(wanted[i]), 1e-11)) << causal << i;
  }
}

// The results of heads that are views of rows can be joined without a copy.
TEST(Attention, ResultsLieInTheOrderOfTheQuery) {
  const Tensor rows = of(DType::f32, spread(2 * 5 * 12, -1, 1), {2, 5, 12}).requires_grad_();
  const Tensor heads = transpose(unflatten(rows, -1, {3, 4}), 1, 2);
  const Tensor out = scaled_dot_product_attention(heads, heads, heads);
  const Tensor dense = contiguous(heads.detach());
  const Tensor expected = scaled_dot_product_attention(dense, dense, dense);
  EXPECT_EQ(out.shape(), (Shape{2, 3, 5, 4}));
  EXPECT_EQ(elements(out), elements(expected));
  if (out.device().counters().decompositions) return;  // a device without its own kernel
  EXPECT_TRUE(transpose(out, 1, 2).is_contiguous());
  EXPECT_TRUE(expected.is_contiguous());
}

// One new query and the filled part of a buffer of keys, as in text generation.
TEST(Attention, AQueryReadsTheFilledPartOfABuffer) {
  const Tensor query = of(DType::f64, spread(6 * 4, -1, 1), {1, 6, 1, 4}), keys = counting({1, 2, 400, 4}) * 0.001;
  const Tensor filled = slice(keys, 2, 0, 333), dense = contiguous(filled);
  const Tensor out = scaled_dot_product_attention(query, filled, filled, {}, 0, false, 0.25, true);
  const Tensor repeated = repeat_interleave(dense, 3, 1);
  const Tensor expected = composed(query, repeated, repeated, zeros({1, 333}, DType::f64));
  EXPECT_TRUE(close(out, {1, 6, 1, 4}, elements(expected), 1e-13));
}

TEST(Attention, HalvesAreRoundedOnceAndHaveGradients) {
  const Tensor x = cast(of(DType::f64, spread(2 * 20 * 4, -1, 1), {2, 20, 4}), DType::bf16).requires_grad_();
  const Tensor wide = cast(x.detach(), DType::f64).requires_grad_();
  const Tensor out = scaled_dot_product_attention(x, x, x, {}, 0, true);
  const Tensor expected = scaled_dot_product_attention(wide, wide, wide, {}, 0, true);
  EXPECT_EQ(out.dtype(), DType::bf16);
  EXPECT_TRUE(close(cast(out, DType::f64), {2, 20, 4}, elements(expected), 0.01));
  const Tensor found = grad({sum(cast(out, DType::f32))}, {x})[0], wanted = grad({sum(expected)}, {wide})[0];
  EXPECT_TRUE(close(cast(found, DType::f64), {2, 20, 4}, elements(wanted), 0.05));
}

// What is recorded of halves has their size, and the forward pass needs no kernel more than without a graph.
TEST(Attention, RecordedHalvesStayHalves) {
  const Tensor x = cast(of(DType::f64, spread(2 * 20 * 4, -1, 1), {2, 20, 4}), DType::bf16);
  const auto kernels = [](const Tensor& of) {
    const uint64_t before = of.device().counters().kernels;
    const Tensor out = scaled_dot_product_attention(of, of, of);
    return of.device().counters().kernels - before;
  };
  kernels(x);  // it loads the kernels
  EXPECT_EQ(kernels(x.detach().requires_grad_()), kernels(x));
}

// A query that sees no key has the gradient 0.
TEST(Attention, GradientOfAQueryWithoutKeys) {
  const Tensor query = counting({2, 2}).requires_grad_(), key = counting({3, 2});
  const Tensor mask = of(DType::boolean, {0, 0, 0, 1, 1, 0}, {2, 3});
  const Tensor out = scaled_dot_product_attention(query, key, key, mask);
  const auto gradient = elements(grad({sum(out * out)}, {query})[0]);
  EXPECT_TRUE(close({gradient[0], gradient[1]}, {0, 0}, 0));
  EXPECT_TRUE(std::isfinite(gradient[2]) && gradient[2] != 0);
}

// A kernel takes the keys in blocks; NaN or +inf may be in any block.
TEST(Attention, AScoreThatIsNoNumberMakesItsRowNaN) {
  const Tensor query = counting({4, 2}), key = counting({300, 2});
  std::vector<double> mask(4 * 300, 0);
  mask[3] = NAN, mask[300 + 299] = INFINITY, mask[600 + 140] = NAN;
  const auto found = elements(scaled_dot_product_attention(query, key, key, f64(mask, {4, 300})));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(found[i])) << i;
  EXPECT_TRUE(std::isfinite(found[6]) && std::isfinite(found[7]));
}

TEST(Attention, AScoreThatIsNoNumberMakesItsGradientNaN) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::vector<double> numbers = spread(40 * 4, -1, 1);
    numbers[3 * 4 + 1] = NAN;
    Tensor query = of(dtype, numbers, {40, 4}).requires_grad_(), key = of(dtype, spread(50 * 4, -1, 1), {50, 4});
    const Tensor out = scaled_dot_product_attention(query, key, key);
    const auto slopes = elements(grad({sum(out)}, {query})[0]);
    for (size_t i = 0; i < slopes.size(); ++i) EXPECT_EQ(std::isnan(slopes[i]), i / 4 == 3) << i;
  }
}

TEST(Attention, RotatesPairs) {
  const Tensor x = f64({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}), cos = f64({1, 0}), sin = f64({0, 1});
  EXPECT_TRUE(close(rotary_embedding(x, cos, sin), {2, 4}, {1, -4, 3, 2, 5, -8, 7, 6}));
  EXPECT_TRUE(close(rotary_embedding(x, cos, sin, true), {2, 4}, {1, 2, -4, 3, 5, 6, -8, 7}));
  EXPECT_TRUE(close(rotary_embedding(zeros({0, 4}, DType::f64), cos, sin), {0, 4}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[rotary_embedding]", "(3,)"}, [&] { rotary_embedding(f64({1, 2, 3}), cos, sin); }));
}

TEST(Attention, ErrorsNameTheShapes) {
  const Tensor q = counting({2, 3, 4}), k = counting({2, 5, 4});
  EXPECT_TRUE(throws(Code::invalid, {"[scaled_dot_product_attention]", "(2, 3, 4)", "(2, 5, 3)"},
                     [&] { scaled_dot_product_attention(q, counting({2, 5, 3}), k); }));
  EXPECT_TRUE(throws(Code::invalid, {"is_causal"},
                     [&] { scaled_dot_product_attention(q, k, k, zeros({3, 5}, DType::f64), 0, true); }));
  EXPECT_TRUE(throws(Code::invalid, {"attn_mask", "i64"},
                     [&] { scaled_dot_product_attention(q, k, k, zeros({3, 5}, DType::i64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"enable_gqa", "(3, 5, 4)"}, [&] {
    scaled_dot_product_attention(q, counting({3, 5, 4}), counting({3, 5, 4}), {}, 0, false, {}, true);
  }));
}

}  // namespace
}  // namespace plugrad::test
