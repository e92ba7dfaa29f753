// Compares convolutions with plain loops over results and windows.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

struct Row {
  const char* name;
  Shape x, weight;
  int64_t stride, padding, dilation, groups;
};
const Row kRows[] = {
    {"1d", {2, 3, 7}, {4, 3, 3}, 1, 0, 1, 1},
    {"1d strided", {2, 4, 9}, {6, 2, 2}, 3, 1, 2, 2},
    {"1d pointwise", {1, 3, 4}, {2, 3, 1}, 1, 0, 1, 1},
    {"2d", {2, 3, 5, 6}, {4, 3, 3, 2}, 1, 0, 1, 1},
    {"2d strided", {1, 2, 6, 7}, {3, 2, 3, 3}, 2, 1, 1, 1},
    {"2d dilated", {2, 2, 7, 7}, {1, 2, 2, 3}, 1, 2, 2, 1},
    {"2d depthwise", {2, 3, 4, 4}, {6, 1, 2, 2}, 1, 1, 1, 3},
    {"3d", {1, 2, 3, 4, 5}, {2, 1, 2, 2, 3}, 2, 1, 1, 2},
    {"2d window of everything", {1, 1, 2, 2}, {1, 1, 2, 2}, 1, 0, 1, 1},
    {"2d no batch", {0, 2, 3, 3}, {1, 2, 2, 2}, 1, 0, 1, 1},
};

// The positions of windows and of results, as shapes of the spatial axes.
Shape spatial(const Shape& shape) { return Shape(std::span(shape.begin() + 2, shape.size() - 2)); }
Shape joined(int64_t first, int64_t second, const Shape& rest) {
  Shape all = {first, second};
  for (int64_t each : rest) all.push_back(each);
  return all;
}

Shape result_shape(const Row& row) {
  Shape out = row.x;
  out[1] = row.weight[0];
  for (size_t i = 2; i < out.size(); ++i)
    out[i] = (row.x[i] + 2 * row.padding - row.dilation * (row.weight[i] - 1) - 1) / row.stride + 1;
  return out;
}

// The element of x below element `in` of the window at `at`, or -1 if it is padding.
int64_t covered(const Row& row, const Shape& at, const Shape& in, int64_t channel) {
  Shape position = at;
  position[1] = channel;
  for (size_t i = 2; i < at.size(); ++i) {
    position[i] = at[i] * row.stride - row.padding + in[i - 2] * row.dilation;
    if (position[i] < 0 || position[i] >= row.x[i]) return -1;
  }
  return offset(position, row.x);
}

// Calls f(result, x, weight) with the offsets of each product.
template <class F> void each_product(const Row& row, F f) {
  const Shape out = result_shape(row);
  for (const Shape& at : positions(out))
    for (int64_t c = 0; c < row.weight[1]; ++c)
      for (const Shape& in : positions(spatial(row.weight))) {
        const int64_t group = at[1] / (row.weight[0] / row.groups), from = covered(row, at, in, group * row.weight[1] + c);
        if (from >= 0) f(offset(at, out), from, offset(joined(at[1], c, in), row.weight));
      }
}

Tensor convolved(const Row& row, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Shape s = {row.stride}, p = {row.padding}, d = {row.dilation};
  if (x.rank() == 3) return conv1d(x, weight, bias, s, p, d, row.groups);
  if (x.rank() == 4) return conv2d(x, weight, bias, s, p, d, row.groups);
  return conv3d(x, weight, bias, s, p, d, row.groups);
}

TEST(Convolution, EqualsPlainLoops) {
  for (const Row& row : kRows) {
    const auto x = spread(row.x.count(), -1, 1), w = spread(row.weight.count(), -1, 1), b = spread(row.weight[0], -1, 1);
    const Shape out = result_shape(row);
    std::vector<double> expected;
    for (const Shape& at : positions(out)) expected.push_back(b[static_cast<size_t>(at[1])]);
    each_product(row, [&](int64_t to, int64_t from, int64_t by) {
      expected[static_cast<size_t>(to)] += x[static_cast<size_t>(from)] * w[static_cast<size_t>(by)];
    });
    const Tensor weight = f64(w, row.weight), bias = f64(b);
    const Tensor strided = transpose(contiguous(transpose(f64(x, row.x))));
    EXPECT_TRUE(close(convolved(row, f64(x, row.x), weight, bias), out, expected, 1e-13)) << row.name;
    EXPECT_TRUE(close(convolved(row, strided, weight, bias), out, expected, 1e-13)) << row.name;
    EXPECT_TRUE(convolved(row, f64(x, row.x), weight, {}).is_contiguous()) << row.name;
  }
}

// conv_transpose2d maps a result's gradient to x's gradient.
TEST(Convolution, TransposedIsTheGradientOfX) {
  for (const Row& row : kRows) {
    if (row.x.rank() != 4 || !row.x[0]) continue;
    const Shape out = result_shape(row);
    const auto g = spread(out.count(), -1, 1), w = spread(row.weight.count(), -1, 1);
    std::vector<double> expected(static_cast<size_t>(row.x.count()), 0.5);
    each_product(row, [&](int64_t to, int64_t from, int64_t by) {
      expected[static_cast<size_t>(from)] += g[static_cast<size_t>(to)] * w[static_cast<size_t>(by)];
    });
    Shape extra;
    for (size_t i = 2; i < 4; ++i)
      extra.push_back(row.x[i] - ((out[i] - 1) * row.stride - 2 * row.padding + row.dilation * (row.weight[i] - 1) + 1));
    const Tensor x = conv_transpose2d(f64(g, out), f64(w, row.weight), full({row.x[1]}, 0.5, DType::f64), {row.stride},
                                      {row.padding}, extra, row.groups, {row.dilation});
    EXPECT_TRUE(close(x, row.x, expected, 1e-13)) << row.name;
  }
}

// Integers, whose sums are exact in any order: several vectors of channels, lines shorter than a vector, steps, groups.
const Row kManyChannels[] = {
    {"short lines", {5, 12, 7, 7}, {80, 12, 3, 3}, 1, 1, 1, 1},
    {"strided", {3, 32, 13, 13}, {32, 32, 3, 3}, 2, 1, 1, 1},
    {"grouped and dilated", {2, 32, 9, 9}, {64, 16, 3, 3}, 1, 2, 2, 2},
    {"3d", {1, 8, 4, 7, 7}, {32, 8, 3, 3, 3}, 1, 1, 1, 1},
    {"pointwise", {2, 70, 5, 5}, {36, 70, 1, 1}, 1, 0, 1, 1},
    {"long lines", {1, 20, 6, 70}, {33, 20, 3, 3}, 1, 1, 1, 1},
    {"depthwise", {2, 40, 9, 9}, {40, 1, 5, 5}, 1, 2, 1, 40},
    {"depthwise with a part of a vector", {1, 20, 6, 6}, {20, 1, 3, 3}, 1, 1, 1, 20},
    {"few channels", {1, 3, 17, 17}, {64, 3, 7, 7}, 2, 3, 1, 1},
    {"few rows", {4, 60, 3, 3}, {3, 60, 3, 3}, 1, 1, 1, 1},
    {"many channels", {1, 520, 3, 3}, {9, 520, 3, 1}, 2, 1, 1, 1},
    {"long window", {1, 1, 1100}, {17, 1, 1030}, 20, 5, 1, 1},
    {"long lines of windows", {1, 9, 2, 64}, {16, 9, 2, 60}, 1, 0, 1, 1},
};
std::vector<double> wholes(int64_t count, int64_t seed) {
  std::vector<double> values;
  for (int64_t i = seed; i < seed + count; ++i) values.push_back(static_cast<double>(i * 40503 / 32 % 7) - 3);
  return values;
}

TEST(Convolution, IsExactForWholeNumbers) {
  for (const Row& row : kManyChannels)
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Shape out = result_shape(row);
      const auto x = wholes(row.x.count(), 1), w = wholes(row.weight.count(), 2), b = wholes(row.weight[0], 3),
                 g = wholes(out.count(), 4);
      std::vector<double> result, x_grad(x.size()), w_grad(w.size());
      for (const Shape& at : positions(out)) result.push_back(b[static_cast<size_t>(at[1])]);
      each_product(row, [&](int64_t to, int64_t from, int64_t by) {
        const auto o = static_cast<size_t>(to), i = static_cast<size_t>(from), k = static_cast<size_t>(by);
        result[o] += x[i] * w[k];
        x_grad[i] += g[o] * w[k];
        w_grad[k] += g[o] * x[i];
      });
      const Tensor input = of(dtype, x, row.x).requires_grad_(), weight = of(dtype, w, row.weight).requires_grad_();
      const Tensor y = convolved(row, input, weight, of(dtype, b, {row.weight[0]}));
      y.backward(of(dtype, g, out));
      EXPECT_TRUE(elements(y) == result) << row.name << " " << dtype;
      EXPECT_TRUE(elements(input.grad()) == x_grad) << row.name << " " << dtype;
      EXPECT_TRUE(elements(weight.grad()) == w_grad) << row.name << " " << dtype;
    }
}

// The images' channels last in memory.
TEST(Convolution, HasTheSameBitsInEveryLayout) {
  for (const Row& row : kManyChannels)
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor x = of(dtype, spread(row.x.count(), -1, 1), row.x);
      const Tensor weight = of(dtype, spread(row.weight.count(), -1, 1), row.weight);
      const Tensor bias = of(dtype, spread(row.weight[0], -1, 1), {row.weight[0]});
      Shape last{0}, first{0, x.rank() - 1};
      for (int i = 2; i < x.rank(); ++i) {
        last.push_back(i);
        first.push_back(i - 1);
      }
      last.push_back(1);
      const Tensor pixels = permute(contiguous(permute(x, last)), first);
      ASSERT_EQ(pixels.shape(), row.x);
      EXPECT_TRUE(same_bits(elements(convolved(row, pixels, weight, bias)), elements(convolved(row, x, weight, bias))))
          << row.name << " " << dtype;
    }
}

TEST(Convolution, WithoutABatch) {
  const Tensor x = counting({2, 3, 3}), weight = counting({1, 2, 2, 2});
  EXPECT_TRUE(close(conv2d(x, weight), {1, 2, 2}, elements(conv2d(unsqueeze(x, 0), weight))));
  EXPECT_TRUE(close(conv1d(counting({1, 3}), ones({1, 1, 2}, DType::f64)), {1, 2}, {1, 3}));
  EXPECT_TRUE(close(conv_transpose2d(ones({1, 1, 2}, DType::f64), ones({1, 1, 1, 2}, DType::f64)), {1, 1, 3}, {1, 2, 1}));
}

TEST(Convolution, ErrorsNameTheShapes) {
  const Tensor x = counting({1, 2, 3, 3}), weight = counting({4, 2, 2, 2});
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "(1, 2, 3, 3)", "(4, 3, 2, 2)"},
                     [&] { conv2d(x, zeros({4, 3, 2, 2}, DType::f64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "groups 3"}, [&] { conv2d(x, weight, {}, {1}, {0}, {1}, 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "bias", "(4,)"}, [&] { conv2d(x, weight, f64({1})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "stride", "(0,)"}, [&] { conv2d(x, weight, {}, {0}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "padding", "(1, 2, 3)"}, [&] { conv2d(x, weight, {}, {1}, {1, 2, 3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "spans 4", "(1, 2, 3, 3)"}, [&] { conv2d(x, weight, {}, {1}, {0}, {3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv1d]", "(1, 2, 3, 3)"}, [&] { conv1d(x, weight); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "i64"}, [&] { conv2d(cast(x, DType::i64), weight); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv2d]", "'same'", "stride (2, 2)"},
                     [&] { conv2d(x, weight, {}, {2}, ConvolutionPadding::same); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv_transpose2d]", "(1, 2, 3, 3)", "no elements"},
                     [&] { conv_transpose2d(x, counting({2, 1, 2, 2}), {}, {1}, {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[unfold]", "spans 4", "(1, 2, 3, 3)"}, [&] { unfold(x, {4}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fold]", "(1, 4, 9)", "columns"}, [] { fold(counting({1, 4, 9}), {3, 3}, {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv_transpose2d]", "output_padding"},
                     [&] { conv_transpose2d(x, counting({2, 1, 2, 2}), {}, {2}, {0}, {2}); }));
}

}  // namespace
}  // namespace plugrad::test
