// gather, scatter_add and targets of a loss: their values, and indices out of range, after which the device still works.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

TEST(Indexing, GatherAlongEachAxis) {
  const Shape shape = {3, 4, 2};
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64})
    for (int axis = 0; axis < 3; ++axis) {
      Shape wanted = shape;
      wanted[static_cast<size_t>(axis)] = 5;
      wanted[static_cast<size_t>((axis + 1) % 3)] -= 1;
      std::vector<int64_t> index;
      for (int64_t i = 0; i < wanted.count(); ++i) index.push_back(i * 7 % shape[static_cast<size_t>(axis)]);
      std::vector<double> expected;
      size_t i = 0;
      for (Shape at : positions(wanted)) {
        at[static_cast<size_t>(axis)] = index[i++];
        expected.push_back(static_cast<double>(offset(at, shape)));
      }
      EXPECT_TRUE(close(gather(counting(shape, dtype), axis - 3, i64(index, wanted)), wanted, expected)) << dtype << axis;
    }
  EXPECT_TRUE(close(gather(of(DType::boolean, {1, 0}, {2}), 0, i64({1, 1, 0})), {3}, {0, 0, 1}));
}

TEST(Indexing, ScatterAddSumsWhatMeets) {
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    const Tensor x = counting({3, 3}, dtype);
    const Tensor out = scatter_add(x, 1, i64({0, 0, 2, 2, 2, 2}, {2, 3}), of(dtype, {1, 2, 3, 10, 20, 30}, {2, 3}));
    EXPECT_TRUE(close(out, {3, 3}, {3, 1, 5, 3, 4, 65, 6, 7, 8})) << dtype;
    EXPECT_TRUE(close(x, {3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8})) << "x itself is left alone";
    EXPECT_TRUE(
        close(scatter_add(x, 0, i64({2, 2}, {1, 2}), of(dtype, {5, 6}, {1, 2})), {3, 3}, {0, 1, 2, 3, 4, 5, 11, 13, 8}))
        << dtype;
  }
}

TEST(Indexing, StridedOperands) {
  const Tensor x = transpose(counting({4, 3})), index = transpose(i64({3, 0, 1, 2, 2, 2}, {2, 3})),
               source = slice(counting({3, 4}), 1, -1, -5, -2);
  EXPECT_TRUE(close(gather(x, 1, index), {3, 2}, {9, 6, 1, 7, 5, 8}));
  EXPECT_TRUE(close(gather(x, 1, expand(i64({1}), {3, 2})), {3, 2}, {3, 3, 4, 4, 5, 5}));
  EXPECT_TRUE(close(scatter_add(x, 1, index, source), {3, 4}, {0, 3, 7, 12, 8, 4, 12, 10, 2, 16, 17, 11}));
}

// Indices of whole rows, or of single elements, in shapes that kernels divide: many rows, long lines, many lines.
struct Lookup {
  Shape x;
  int axis;
  int64_t count;  // the number of indices along the axis
  bool rows;      // one index for all elements of a row
};
constexpr const char* kLabels[] = {"table",     "few rows",           "rows of one line",    "lines",
                                   "long line", "rows of many lines", "elements of columns", "columns",
                                   "transposed"};
const std::vector<Lookup>& lookups() {
  static const std::vector<Lookup> list = {
      {{700, 100}, 0, 900, true}, {{3, 5000}, 0, 40, true},   {{2, 90, 33}, 1, 400, true},
      {{50, 70}, 1, 90, false},   {{20000}, 0, 40000, false}, {{40, 9, 7}, 1, 20, true},
      {{90, 3}, 0, 40000, false}, {{9, 70}, 0, 500, false},   {{70, 9}, 1, 500, false}};
  return list;
}
Shape with_extent(Shape shape, int axis, int64_t extent) {
  shape[static_cast<size_t>(axis)] = extent;
  return shape;
}
Tensor scrambled_index(const Lookup& l) {
  Shape shape = with_extent(l.x, l.axis, l.count);
  for (int i = l.axis + 1; l.rows && i < l.x.rank(); ++i) shape[static_cast<size_t>(i)] = 1;
  std::vector<int64_t> index;
  for (int64_t i = 0; i < shape.count(); ++i) index.push_back(i * i % 7919 % l.x[static_cast<size_t>(l.axis)]);
  return expand(i64(index, shape), with_extent(l.x, l.axis, l.count));
}
// For each element of an index, the offset of the element that it selects.
std::vector<size_t> selected(const Lookup& l, const Tensor& index) {
  const std::vector<double> chosen = elements(index);
  std::vector<size_t> offsets;
  for (Shape at : positions(index.shape())) {
    at[static_cast<size_t>(l.axis)] = static_cast<int64_t>(chosen[offsets.size()]);
    offsets.push_back(static_cast<size_t>(offset(at, l.x)));
  }
  return offsets;
}

TEST(Indexing, RowsLinesAndColumns) {
  for (size_t i = 0; i < lookups().size(); ++i) {
    const Lookup& l = lookups()[i];
    SCOPED_TRACE(kLabels[i]);
    const Tensor index = scrambled_index(l), x = remainder(counting(l.x, DType::f32), 251),
                 source = remainder(counting(index.shape(), DType::f32), 127);
    const std::vector<size_t> offsets = selected(l, index);
    const std::vector<double> values = elements(x), terms = elements(source);
    std::vector<double> gathered, sums = values;
    for (size_t j = 0; j < offsets.size(); ++j) {
      gathered.push_back(values[offsets[j]]);
      sums[offsets[j]] += terms[j];
    }
    EXPECT_TRUE(close(gather(x, l.axis, index), index.shape(), gathered));
    EXPECT_TRUE(close(scatter_add(x, l.axis, index, source), l.x, sums));
    Tensor leaf = clone(x);
    leaf.requires_grad_();
    gather(leaf, l.axis, index).backward(source);
    EXPECT_TRUE(close(leaf.grad() + x, l.x, sums)) << "the gradient of gather";
    const auto column_major = [](const Tensor& a) { return transpose(contiguous(transpose(a, 0, -1)), 0, -1); };
    EXPECT_TRUE(close(gather(column_major(x), l.axis, column_major(index)), index.shape(), gathered));
    EXPECT_TRUE(close(scatter_add(x, l.axis, column_major(index), column_major(source)), l.x, sums));
  }
}

TEST(Indexing, NothingToIndex) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(close(gather(x, 1, zeros({2, 0}, DType::i64)), {2, 0}, {}));
  EXPECT_TRUE(close(gather(x, 1, zeros({0, 2}, DType::i64)), {0, 2}, {}));
  EXPECT_TRUE(close(scatter_add(x, 1, zeros({0, 3}, DType::i64), zeros({0, 3}, DType::f64)), {2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(throws(Code::index_error, {"[gather]", "no elements"}, [] { gather(zeros({2, 0}), 1, i64({0, 0}, {2, 1})); }));
}

// On devices that report late, reading the result throws.
TEST(Indexing, OutOfRangeIsAnErrorAndTheDeviceGoesOn) {
  const Tensor x = counting({3, 2}), ok = x + 1;
  for (int64_t bad : {int64_t(3), int64_t(-1), INT64_MAX, INT64_MIN}) {
    const Tensor index = i64({0, bad}, {1, 2});
    EXPECT_TRUE(throws(Code::index_error, {"gather"}, [&] { elements(gather(x, 0, index)); })) << bad;
    EXPECT_TRUE(close(ok * 2, {3, 2}, {2, 4, 6, 8, 10, 12}));
    EXPECT_TRUE(throws(Code::index_error, {"scatter"}, [&] { elements(scatter_add(x, 0, index, f64({1, 1}, {1, 2}))); }))
        << bad;
    EXPECT_TRUE(close(x, {3, 2}, {0, 1, 2, 3, 4, 5}));
    EXPECT_TRUE(close(gather(x, 0, i64({2, 1}, {1, 2})), {1, 2}, {4, 3}));
    const Tensor row = expand(i64({0, bad}, {2, 1}), {2, 2});
    EXPECT_TRUE(throws(Code::index_error, {"gather"}, [&] { elements(gather(x, 0, row)); })) << bad;
    EXPECT_TRUE(throws(Code::index_error, {"scatter"}, [&] { elements(scatter_add(x, 0, row, slice(ok, 0, 0, 2))); }))
        << bad;
  }
}

TEST(Indexing, BadTargetsOfCrossEntropy) {
  const Tensor x = counting({2, 3});
  for (int64_t bad : {int64_t(3), int64_t(-1), INT64_MAX}) {
    EXPECT_TRUE(throws(Code::index_error, {"cross_entropy"}, [&] { elements(cross_entropy(x, i64({0, bad}))); })) << bad;
    EXPECT_NEAR(cross_entropy(x, i64({2, 2})).item<double>(), 0.40760596444438, 1e-12);
  }
  EXPECT_TRUE(
      throws(Code::invalid, {"[cross_entropy]", "f64", "an integer dtype"}, [&] { cross_entropy(x, counting({2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "(2, 3)", "(3,)"}, [&] { cross_entropy(x, i64({0, 0, 0})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "(3,)"}, [&] { cross_entropy(counting({3}), i64({0, 0, 0})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross_entropy]", "(2, 0)"}, [] { cross_entropy(zeros({2, 0}), i64({0, 0})); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[cross_entropy]", "i64"}, [] { cross_entropy(counting({2, 3}, DType::i64), i64({0, 0})); }));
}

TEST(Indexing, ErrorsNameWhatWasWrong) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"[gather]", "f64", "an integer dtype"}, [&] { gather(x, 0, x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gather]", "(2,)", "(2, 3)"}, [&] { gather(x, 0, i64({0, 1})); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[gather]", "(3, 3)", "(2, 3)", "axis 1"}, [&] { gather(x, 1, zeros({3, 3}, DType::i64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gather]", "axis 2"}, [&] { gather(x, 2, zeros({2, 3}, DType::i64)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[scatter_add]", "(1, 3)", "(2, 3)"},
                     [&] { scatter_add(x, 0, zeros({1, 3}, DType::i64), x); }));
  EXPECT_TRUE(throws(Code::invalid, {"[scatter_add]", "f64", "f32"},
                     [&] { scatter_add(x, 0, zeros({2, 3}, DType::i64), counting({2, 3}, DType::f32)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[scatter_add]", "bool"}, [] {
    const Tensor b = zeros({2}, DType::boolean);
    scatter_add(b, 0, zeros({2}, DType::i64), b);
  }));
}

}  // namespace
}  // namespace plugrad::test
