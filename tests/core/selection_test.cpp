// Selection by indices and masks, scatters, and parts of tensors: values, ties, empty operands, operands of rank 0, errors.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
Tensor bools(const std::vector<bool>& values, const Shape& shape) { return Tensor::from(values, shape); }

// A call on x = 0, 1, 2, ... of shape (2, 3), and PyTorch's result.
struct Row {
  const char* name;
  Tensor (*apply)(const Tensor& x);
  Shape shape;
  std::vector<double> expected;
};
const Row kRows[] = {
    {"nonzero", [](const Tensor& x) { return nonzero(x); }, {5, 2}, {0, 1, 0, 2, 1, 0, 1, 1, 1, 2}},
    {"nonzero of nothing", [](const Tensor& x) { return nonzero(x * 0); }, {0, 2}, {}},
    {"nonzero of rank 0", [](const Tensor& x) { return argwhere(select(select(x, 0, 1), 0, 1)); }, {1, 0}, {}},
    {"positions", [](const Tensor& x) { return where(gt(x, 3))[1]; }, {2}, {1, 2}},
    {"positions of rank 0", [](const Tensor& x) { return where(max(x))[0]; }, {1}, {0}},
    {"masked_select", [](const Tensor& x) { return masked_select(x, bools({true, false, true}, {3})); }, {4}, {0, 2, 3, 5}},
    {"masked_select of rank 0", [](const Tensor& x) { return masked_select(sum(x), bools({true}, {})); }, {1}, {15}},
    {"masked_scatter",
     [](const Tensor& x) { return masked_scatter(x, lt(x, 3), full_like(x, 7)); },
     {2, 3},
     {7, 7, 7, 3, 4, 5}},
    {"masked_scatter of nothing",
     [](const Tensor& x) { return masked_scatter(x, lt(x, 0), slice(select(x, 0, 0), 0, 0, 0)); },
     {2, 3},
     {0, 1, 2, 3, 4, 5}},
    {"take", [](const Tensor& x) { return take(x, i64({5, -6}, {2, 1})); }, {2, 1}, {5, 0}},
    {"take along an axis", [](const Tensor& x) { return take(x, i64({-1}, {1, 1}), 1); }, {2, 1, 1}, {2, 5}},
    {"take_along_dim", [](const Tensor& x) { return take_along_dim(x, i64({2, -2}, {2, 1}), 1); }, {2, 1}, {2, 4}},
    {"take_along_dim, flat", [](const Tensor& x) { return take_along_dim(x, i64({4, 0}, {2, 1})); }, {2}, {4, 0}},
    {"put",
     [](const Tensor& x) { return put(x, i64({0, -1}), slice(select(x, 0, 1), 0, 0, 2)); },
     {2, 3},
     {3, 1, 2, 3, 4, 4}},
    {"index_select", [](const Tensor& x) { return index_select(x, -1, i64({2, 0, 2})); }, {2, 3}, {2, 0, 2, 5, 3, 5}},
    {"index_select of rank 0", [](const Tensor& x) { return index_select(sum(x), 0, i64({0})); }, {}, {15}},
    {"index_add", [](const Tensor& x) { return index_add(x, 0, i64({1, 1}), x, 2); }, {2, 3}, {0, 1, 2, 9, 14, 19}},
    {"index_copy", [](const Tensor& x) { return index_copy(x, 0, i64({1, 0}), x); }, {2, 3}, {3, 4, 5, 0, 1, 2}},
    {"index_fill", [](const Tensor& x) { return index_fill(x, 1, i64({-1}, {}), 9); }, {2, 3}, {0, 1, 9, 3, 4, 9}},
    {"index_fill of nothing", [](const Tensor& x) { return index_fill(x, 1, i64({}, {0}), 9); }, {2, 3}, {0, 1, 2, 3, 4, 5}},
    {"scatter", [](const Tensor& x) { return scatter(x, 1, i64({2, 2}, {1, 2}), x + 10); }, {2, 3}, {0, 1, 11, 3, 4, 5}},
    {"scatter a number", [](const Tensor& x) { return scatter(x, 0, i64({1, 0}, {1, 2}), 9); }, {2, 3}, {0, 9, 2, 9, 4, 5}},
    {"scatter into rank 0", [](const Tensor& x) { return scatter(sum(x), 0, i64({0}, {}), 9); }, {}, {9}},
    {"diagonal above", [](const Tensor& x) { return diagonal(x, 1); }, {2}, {1, 5}},
    {"diagonal outside", [](const Tensor& x) { return diagonal(x, -2); }, {0}, {}},
    {"diag",
     [](const Tensor& x) { return diag(select(x, 0, 0), -1); },
     {4, 4},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0}},
    {"diag_embed", [](const Tensor& x) { return diag_embed(slice(x, 1, 0, 1)); }, {2, 1, 1}, {0, 3}},
    {"diagonal_scatter", [](const Tensor& x) { return diagonal_scatter(x, select(x, 1, 2)); }, {2, 3}, {2, 1, 2, 3, 5, 5}},
    {"select_scatter", [](const Tensor& x) { return select_scatter(x, select(x, 0, 1), 0, 0); }, {2, 3}, {3, 4, 5, 3, 4, 5}},
    {"slice_scatter",
     [](const Tensor& x) { return slice_scatter(x, slice(x, 1, 1, 3), 1, 0, {}, 2); },
     {2, 3},
     {1, 1, 2, 4, 4, 5}},
    {"narrow", [](const Tensor& x) { return narrow(x, 1, -2, 1); }, {2, 1}, {1, 4}},
    {"narrow to nothing", [](const Tensor& x) { return narrow(x, 1, 3, 0); }, {2, 0}, {}},
    {"unbind", [](const Tensor& x) { return unbind(x, 1)[1]; }, {2}, {1, 4}},
};

TEST(Selection, ReturnsWhatPyTorchReturns) {
  for (const Row& row : kRows)
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i64, DType::u8})
      EXPECT_TRUE(close(row.apply(counting({2, 3}, dtype)), row.shape, row.expected)) << row.name << ' ' << dtype;
}

TEST(Selection, PartsAreViewsAndDiagIsACopy) {
  Tensor x = counting({2, 3});
  diagonal(x).fill_(7);
  unbind(x, 1)[1].fill_(8);
  narrow(x, 1, 2, 1).fill_(9);
  diag(x).fill_(0);
  EXPECT_TRUE(close(x, {2, 3}, {7, 8, 9, 3, 8, 9}));
}

// --- scatter_reduce.

struct Reduced {
  ScatterReduction reduce;
  bool include_self;
  std::vector<double> expected;
};

TEST(Selection, ScatterReduceJoinsWhatMeets) {
  const std::vector<double> nothing = {7, 4, -3};
  const Reduced rows[] = {{ScatterReduction::sum, true, {12, 4, -5}},  {ScatterReduction::sum, false, {5, 4, -2}},
                          {ScatterReduction::mean, true, {3, 4, -3}},  {ScatterReduction::mean, false, {1, 4, -2}},
                          {ScatterReduction::prod, true, {-56, 4, 6}}, {ScatterReduction::prod, false, {-8, 4, -2}},
                          {ScatterReduction::amax, true, {7, 4, -2}},  {ScatterReduction::amax, false, {4, 4, -2}},
                          {ScatterReduction::amin, true, {-1, 4, -3}}, {ScatterReduction::amin, false, {-1, 4, -2}}};
  for (DType dtype : {DType::i64, DType::i8})
    for (const Reduced& row : rows) {
      const Tensor x = of(dtype, nothing, {3}), src = of(dtype, {2, 4, -2, -1, 99}, {5});
      EXPECT_TRUE(close(scatter_reduce(x, 0, i64({0, 0, 2, 0}), src, row.reduce, row.include_self), {3}, row.expected))
          << static_cast<int>(row.reduce) << row.include_self << dtype;
    }
}

TEST(Selection, ExtremesShareTheGradientAndKeepNan) {
  Tensor x = f64({3, 1}).requires_grad_(), src = f64({3, 2, 3, 0}).requires_grad_();
  const Tensor out = scatter_reduce(x, 0, i64({0, 0, 0, 1}), src, ScatterReduction::amax);
  const std::vector<Tensor> grads = grad({sum(out * f64({6, 1}))}, {x, src});
  EXPECT_TRUE(close(grads[0], {2}, {2, 1}));
  EXPECT_TRUE(close(grads[1], {4}, {2, 0, 2, 0}));
  EXPECT_TRUE(
      close(scatter_reduce(f64({1}), 0, i64({0, 0}), f64({std::nan(""), 5}), ScatterReduction::amin), {1}, {std::nan("")}));
}

// --- Errors.

struct Wrong {
  Code code;
  std::vector<std::string> parts;
  Tensor (*apply)(const Tensor& x);
};
const Wrong kWrong[] = {
    {Code::index_error, {}, [](const Tensor& x) { return take(x, i64({7})); }},
    {Code::index_error, {}, [](const Tensor& x) { return index_select(x, 1, i64({-4})); }},
    {Code::index_error, {}, [](const Tensor& x) { return scatter(x, 0, i64({2}, {1, 1}), 1); }},
    {Code::index_error, {}, [](const Tensor& x) { return masked_scatter(x, lt(x, 3), slice(select(x, 0, 0), 0, 0, 2)); }},
    {Code::index_error, {"[narrow]", "4", "axis 1"}, [](const Tensor& x) { return narrow(x, 1, 4, 0); }},
    {Code::invalid, {"[narrow]", "3", "axis 1"}, [](const Tensor& x) { return narrow(x, 1, 1, 3); }},
    {Code::invalid, {"[masked_select]", "f64", "bool"}, [](const Tensor& x) { return masked_select(x, x); }},
    {Code::invalid, {"[take]", "f64"}, [](const Tensor& x) { return take(x, x); }},
    {Code::invalid, {"[take_along_dim]", "(1,)"}, [](const Tensor& x) { return take_along_dim(x, i64({0}), 0); }},
    {Code::invalid, {"[put]", "2", "1"}, [](const Tensor& x) { return put(x, i64({0, 1}), f64({1})); }},
    {Code::invalid, {"[index_select]", "(1, 1)"}, [](const Tensor& x) { return index_select(x, 0, i64({0}, {1, 1})); }},
    {Code::invalid, {"[index_add]", "(2, 3)", "(1, 3)"}, [](const Tensor& x) { return index_add(x, 0, i64({0}), x); }},
    {Code::invalid,
     {"[scatter]", "(3, 3)", "(2, 3)"},
     [](const Tensor& x) { return scatter(x, 1, zeros({3, 3}, DType::i64), 1); }},
    {Code::invalid,
     {"[scatter]", "f32", "f64"},
     [](const Tensor& x) { return scatter(x, 0, i64({0}, {1, 1}), zeros({1, 1})); }},
    {Code::invalid,
     {"[scatter_reduce]", "bool"},
     [](const Tensor& x) { return scatter_reduce(lt(x, 1), 0, i64({0}, {1, 1}), lt(x, 1), ScatterReduction::sum); }},
    {Code::invalid, {"[diagonal]", "axis 1", "twice"}, [](const Tensor& x) { return diagonal(x, 0, 1, -1); }},
    {Code::invalid, {"[diag]", "(1, 2, 3)"}, [](const Tensor& x) { return diag(unsqueeze(x, 0)); }},
    {Code::invalid, {"[select_scatter]", "(1,)", "(3,)"}, [](const Tensor& x) { return select_scatter(x, f64({1}), 0, 1); }},
};

TEST(Selection, ErrorsNameWhatWasWrong) {
  for (const Wrong& row : kWrong) EXPECT_TRUE(throws(row.code, row.parts, [&] { elements(row.apply(counting({2, 3}))); }));
}

}  // namespace
}  // namespace plugrad::test
