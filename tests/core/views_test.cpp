// Views: their elements, the memory that they share, and the rules of Python's slices and NumPy's shapes.
#include <tests/core/expect.hpp>

#include <cstdint>
#include <numeric>

namespace plugrad::test {
namespace {

// --- Slices, as Python defines them: the extent is added once to a negative position, then positions are clipped.

std::vector<int64_t> python_slice(int64_t extent, int64_t start, int64_t end, int64_t step) {
  const auto clipped = [&](int64_t at) {
    if (at < 0) at += extent;
    if (at < 0) return step < 0 ? int64_t(-1) : int64_t(0);
    if (at >= extent) return step < 0 ? extent - 1 : extent;
    return at;
  };
  std::vector<int64_t> taken;
  for (int64_t at = clipped(start), stop = clipped(end); step > 0 ? at < stop : at > stop; at += step) taken.push_back(at);
  return taken;
}

TEST(Views, SlicesFollowPython) {
  for (int64_t extent : {0, 1, 5}) {
    const Tensor x = counting({extent});
    for (int64_t step : {-7, -5, -3, -2, -1, 1, 2, 3, 5, 7})
      for (int64_t start = -8; start <= 8; ++start)
        for (int64_t end = -8; end <= 8; ++end) {
          const std::vector<int64_t> expected = python_slice(extent, start, end, step);
          const Tensor part = slice(x, 0, start, end, step);
          ASSERT_EQ(part.count(), static_cast<int64_t>(expected.size()))
              << extent << '[' << start << ':' << end << ':' << step << ']';
          ASSERT_EQ(elements(part), std::vector<double>(expected.begin(), expected.end()))
              << extent << '[' << start << ':' << end << ':' << step << ']';
        }
  }
}

TEST(Views, SlicesWithExtremePositions) {
  const Tensor x = counting({3, 2});
  EXPECT_TRUE(close(slice(x, 0, INT64_MIN, INT64_MAX), {3, 2}, {0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(close(slice(x, 0, INT64_MAX, INT64_MIN, -1), {3, 2}, {4, 5, 2, 3, 0, 1}));
  EXPECT_TRUE(close(slice(x, 0, 1, INT64_MAX, INT64_MAX), {1, 2}, {2, 3}));
  EXPECT_TRUE(close(slice(x, 0, 1, INT64_MIN, INT64_MIN), {1, 2}, {2, 3}));
  EXPECT_TRUE(throws(Code::invalid, {"[slice]", "step 0"}, [&] { slice(x, 0, 0, 1, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[slice]", "axis 2", "rank 2"}, [&] { slice(x, 2, 0, 1); }));
}

TEST(Views, SlicesOfSlices) {
  const Tensor x = counting({4, 6});
  const Tensor part = slice(slice(slice(x, 1, 5, -7, -2), 0, 1, 4, 2), 1, -1, -4, -1);
  EXPECT_TRUE(close(part, {2, 3}, {7, 9, 11, 19, 21, 23}));
  EXPECT_TRUE(close(select(part, 0, -1), {3}, {19, 21, 23}));
  EXPECT_TRUE(close(select(select(part, 1, 0), 0, 1), {}, {19}));
  EXPECT_TRUE(throws(Code::index_error, {"[select]", "index 3", "axis 1", "extent 3"}, [&] { select(part, 1, 3); }));
  EXPECT_TRUE(throws(Code::index_error, {"[select]", "index -3", "extent 2"}, [&] { select(part, 0, -3); }));
}

// --- Reshape keeps the row-major order of every kind of view.

std::vector<Tensor> kinds_of_views() {
  const Tensor x = counting({4, 6}), y = counting({2, 3, 4});
  return {x,
          transpose(x),
          slice(x, 1, -1, -7, -1),
          slice(x, 0, 3, -5, -1),
          slice(slice(x, 1, -1, -7, -1), 0, 3, -5, -1),
          slice(counting({8, 6}), 0, 1, 8, 2),
          slice(counting({4, 12}), 1, 0, 12, 2),
          slice(counting({4, 8}), 1, 1, 7),
          slice(counting({6, 6}), 0, 1, 5),
          expand(counting({6}), {4, 6}),
          expand(counting({4, 1}), {4, 6}),
          expand(counting({}), {4, 6}),
          permute(y, {2, 0, 1}),
          permute(y, {1, 2, 0}),
          permute(y, {0, 2, 1}),
          permute(slice(y, 0, 1, -3, -1), {0, 2, 1}),
          unsqueeze(transpose(x), 1),
          expand(unsqueeze(counting({2, 3}), 1), {2, 4, 3}),
          expand(counting({2, 1, 1, 3}), {2, 2, 2, 3})};
}
const Shape kShapesOf24[] = {{24},
                             {4, 6},
                             {6, 4},
                             {2, 12},
                             {12, 2},
                             {2, 3, 4},
                             {4, 3, 2},
                             {2, 2, 2, 3},
                             {3, 2, 2, 2},
                             {1, 24, 1},
                             {8, 3},
                             {3, 8},
                             {1, 4, 1, 6, 1},
                             {2, 1, 2, 1, 6},
                             {-1},
                             {3, -1},
                             {-1, 2, 6},
                             {2, 2, 1, 1, 2, 1, 3, 1}};

TEST(Views, ReshapeKeepsTheOrderOfEveryKindOfView) {
  for (const Tensor& view : kinds_of_views()) {
    const std::vector<double> expected = elements(view);
    for (Shape shape : kShapesOf24) {
      const Tensor out = reshape(view, shape);
      int64_t known = 1;
      for (int64_t extent : shape) known *= extent == -1 ? 1 : extent;
      for (int64_t& extent : shape) extent = extent == -1 ? 24 / known : extent;
      EXPECT_TRUE(close(out, shape, expected)) << view.shape() << view.strides() << " to " << shape;
    }
  }
}

// Returns whether a view shares the memory of x: a write to the view then changes x.
bool share(const Tensor& x, Tensor view) {
  const double before = sum(x).item<double>();
  view.fill_(1000);
  return sum(x).item<double>() != before;
}

TEST(Views, ReshapeIsAViewWhereStridesAllowIt) {
  const auto x = [] { return counting({4, 6}); };
  struct Row {
    Tensor source;
    Shape shape;
    bool view;
  };
  const Row rows[] = {
      {x(), {2, 2, 6}, true},
      {x(), {24}, true},
      {transpose(x()), {6, 2, 2}, true},
      {transpose(x()), {24}, false},
      {transpose(x()), {1, 6, 4, 1}, true},
      {slice(x(), 1, 0, 4), {4, 2, 2}, true},
      {slice(x(), 1, 0, 4), {16}, false},
      {slice(x(), 0, 1, 3), {12}, true},
      {slice(x(), 0, 3, -5, -1), {2, 2, 6}, true},
      {slice(slice(x(), 1, -1, -7, -1), 0, 3, -5, -1), {24}, true},
      {slice(x(), 0, 0, 4, 2), {12}, false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(share(row.source, reshape(row.source, row.shape)), row.view) << row.source.strides() << " to " << row.shape;
}

TEST(Views, ReshapeOfNothingAndOfOne) {
  EXPECT_TRUE(close(reshape(zeros({0, 3}), {3, 0, 2}), {3, 0, 2}, {}));
  EXPECT_TRUE(close(reshape(zeros({0, 3}), {-1, 3}), {0, 3}, {}));
  EXPECT_TRUE(close(reshape(counting({1, 1}), {}), {}, {0}));
  EXPECT_TRUE(close(reshape(counting({}), {1, 1, 1, 1, 1, 1, 1, 1}), {1, 1, 1, 1, 1, 1, 1, 1}, {0}));
  EXPECT_TRUE(close(reshape(expand(counting({1}), {1, 1}), {-1}), {1}, {0}));
}

TEST(Views, ReshapeErrors) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"[reshape]", "(2, 3)", "6", "(4, 2)", "8"}, [&] { reshape(x, {4, 2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[reshape]", "(2, 3)"}, [&] { reshape(x, {4, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"-1"}, [&] { reshape(x, {-1, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[reshape]"}, [&] { reshape(zeros({0, 3}), {0, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"negative"}, [&] { reshape(x, {-2, -3}); }));
}

// --- Axes.

TEST(Views, PermuteAndTranspose) {
  const Shape shape = {2, 3, 4};
  const Tensor x = counting(shape);
  for (const Shape& axes :
       {Shape{0, 1, 2}, Shape{0, 2, 1}, Shape{1, 0, 2}, Shape{1, 2, 0}, Shape{2, 0, 1}, Shape{-1, -2, -3}}) {
    Shape out = shape, order = axes;
    for (size_t i = 0; i < 3; ++i)
      order[i] = axes[i] < 0 ? axes[i] + 3 : axes[i], out[i] = shape[static_cast<size_t>(order[i])];
    std::vector<double> expected;
    for (const Shape& at : positions(out)) {
      Shape from = at;
      for (size_t i = 0; i < 3; ++i) from[static_cast<size_t>(order[i])] = at[i];
      expected.push_back(static_cast<double>(offset(from, shape)));
    }
    EXPECT_TRUE(close(permute(x, axes), out, expected)) << axes;
  }
  EXPECT_TRUE(close(transpose(counting({2, 3})), {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(transpose(x, 0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_TRUE(throws(Code::invalid, {"[permute]", "twice"}, [&] { permute(x, {0, 1, -2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[permute]", "2 axes", "(2, 3, 4)"}, [&] { permute(x, {0, 1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[transpose]", "axis -2", "rank 1"}, [] { transpose(counting({3})); }));
}

TEST(Views, ExpandSqueezeUnsqueeze) {
  const Tensor x = counting({2, 1});
  EXPECT_TRUE(close(expand(x, {2, 3}), {2, 3}, {0, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(close(expand(x, {2, -1, 2}), {2, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_TRUE(close(expand(x, {2, 0}), {2, 0}, {}));
  EXPECT_TRUE(expand(x, {2, 1}).is_same(x));
  for (const Shape& bad : {Shape{3, 1}, Shape{1}, Shape{-1, 2, 1}, Shape{2, -2}, Shape{0, 1}})
    EXPECT_TRUE(throws(Code::invalid, {"[expand]", "(2, 1)", bad.text()}, [&] { expand(x, bad); })) << bad;
  EXPECT_EQ(squeeze(zeros({1, 2, 1, 3})).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(zeros({1, 2, 1, 3}), {2}).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(squeeze(zeros({1, 2, 1, 3}), {-2, 0}).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(zeros({1, 2}), {1, 0}).shape(), (Shape{2}));
  EXPECT_EQ(squeeze(zeros({1, 2}), {1}).shape(), (Shape{1, 2}));
  EXPECT_EQ(unsqueeze(zeros({2, 3}), 0).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(unsqueeze(zeros({2, 3}), -1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(unsqueeze(zeros({}), 0).shape(), (Shape{1}));
  EXPECT_TRUE(throws(Code::invalid, {"[unsqueeze]", "axis 3"}, [] { unsqueeze(zeros({2, 3}), 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"maximum of 8"}, [] { unsqueeze(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0); }));
}

TEST(Views, ContiguousCopiesOnlyWhatIsNot) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(contiguous(x).is_same(x));
  EXPECT_FALSE(transpose(x).is_contiguous());
  EXPECT_TRUE(contiguous(transpose(x)).is_contiguous());
  EXPECT_TRUE(close(contiguous(transpose(x)), {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(slice(x, 0, 1, 2).is_contiguous());
  EXPECT_EQ(transpose(x).strides(), (Shape{1, 3}));
}

// --- Joining.

TEST(Views, CatAndStack) {
  for (DType dtype : kRealDTypes) {
    const Tensor a = of(dtype, {1, 0}, {1, 2}), b = of(dtype, {0, 1, 1, 1}, {2, 2}), none = zeros({0, 2}, dtype);
    EXPECT_TRUE(close(cat({a, none, b}), {3, 2}, {1, 0, 0, 1, 1, 1})) << dtype;
    EXPECT_TRUE(close(cat({transpose(a), transpose(b)}, -1), {2, 3}, {1, 0, 1, 0, 1, 1})) << dtype;
    EXPECT_TRUE(close(stack({b, transpose(b), b}, 1), {2, 3, 2}, {0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1})) << dtype;
    EXPECT_TRUE(close(stack({a, a}, -1), {1, 2, 2}, {1, 1, 0, 0})) << dtype;
  }
  EXPECT_TRUE(close(cat({zeros({0}), zeros({0})}), {0}, {}));
  EXPECT_TRUE(close(cat({slice(counting({6}), 0, 5, -7, -2), counting({2})}), {5}, {5, 3, 1, 0, 1}));
}

TEST(Views, CatAndStackErrors) {
  const Tensor a = counting({2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "no tensors"}, [] { cat({}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[stack]", "no tensors"}, [] { stack({}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "(2, 3)", "(2, 4)", "axis 0"}, [&] { cat({a, counting({2, 4})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "(2, 3)", "(3,)"}, [&] { cat({a, counting({3})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[stack]", "(2, 3)", "(3, 2)"}, [&] { stack({a, transpose(a)}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "rank 0"}, [] { cat({counting({}), counting({})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "undefined"}, [&] { cat({a, Tensor()}); }));
}

// The pass adds the gradients of slices to one tensor in place. It must not do so to a tensor that is also used elsewhere.
TEST(Views, GradientsOfSlicesOfOneTensorMeet) {
  const Tensor leaf = counting({2, 6}).requires_grad_();
  const auto gradient = [&](GradOptions options) {
    const Tensor y = leaf * 1, z = y + y;
    const Tensor total = sum(slice(y, 1, 0, 4) * 2) + sum(slice(y, 1, 2, 6) * 3) + sum(select(y, 0, 1)) +
                         sum(slice(z, 1, 5, -7, -2) * 10) + sum(z);
    return elements(grad({total}, {leaf}, options)[0]);
  };
  const std::vector<double> expected = {4, 24, 7, 27, 5, 25, 5, 25, 8, 28, 6, 26};
  EXPECT_EQ(gradient({}), expected);
  EXPECT_EQ(gradient({.retain_graph = true}), expected);
  EXPECT_EQ(gradient({.create_graph = true}), expected);
  // Both operands of u + v get the same gradient tensor. Adding to the gradient of u must not change the gradient of v.
  const Tensor a = counting({4}).requires_grad_(), u = a * 1, v = a * 1;
  const Tensor both = u + v;
  const auto grads = grad({sum(both * 2) + sum(slice(u, 0, 0, 2) * 5)}, {u, v}, {.retain_graph = true});
  EXPECT_EQ(elements(grads[0]), (std::vector<double>{7, 7, 2, 2}));
  EXPECT_EQ(elements(grads[1]), (std::vector<double>{2, 2, 2, 2}));
}

TEST(Views, RankEight) {
  const Shape shape = {2, 1, 2, 1, 2, 3, 1, 2};
  const Tensor x = counting(shape), y = permute(x, {7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(y.shape(), (Shape{2, 1, 3, 2, 1, 2, 1, 2}));
  EXPECT_TRUE(close(permute(contiguous(y), {7, 6, 5, 4, 3, 2, 1, 0}), shape, elements(x)));
  EXPECT_EQ(sum(y, {0, 2, 3, 5}).shape(), (Shape{1, 1, 1, 2}));
  EXPECT_EQ(sum(y).item<double>(), sum(x).item<double>());
  EXPECT_TRUE(throws(Code::invalid, {"maximum of 8"}, [] { Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}); }));
}

}  // namespace
}  // namespace plugrad::test
