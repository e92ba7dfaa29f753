// x[key] and x[key] = value for every kind of key and layout. The expected elements are those of NumPy and PyTorch.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
using Key = std::vector<Index>;

Tensor bools(const std::vector<bool>& values, const Shape& shape) { return Tensor::from(values, shape); }

// A key for a tensor (2, 3, 4), the shape of the chosen part, and the row-major positions of its elements.
struct Row {
  const char* name;
  Key (*key)();
  Shape shape;
  std::vector<double> chosen;
};
const Row kRows[] = {
    {"Number", [] { return Key{1}; }, {3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
    {"SlicesAndNewAxes",
     [] { return Key{newaxis, Slice{1}, ellipsis, newaxis, Slice{.end = -1, .step = 2}}; },
     {1, 1, 3, 1, 2},
     {12, 14, 16, 18, 20, 22}},
    {"BackwardSlice",
     [] { return Key{ellipsis, Slice{.step = -3}}; },
     {2, 3, 2},
     {3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20}},
    {"Indices", [] { return Key{i64({1, 0, 1})}; }, {3, 3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                                                0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                                                12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
    {"FromTheEnd", [] { return Key{Slice{}, i64({-1, 2, -3})}; }, {2, 3, 4}, {8,  9,  10, 11, 8,  9,  10, 11,
                                                                              0,  1,  2,  3,  20, 21, 22, 23,
                                                                              20, 21, 22, 23, 12, 13, 14, 15}},
    {"Matrix",
     [] { return Key{Slice{}, i64({0, 2, 2, 1}, {2, 2})}; },
     {2, 2, 2, 4},
     {0, 1, 2, 3, 8, 9, 10, 11, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 20, 21, 22, 23, 16, 17, 18, 19}},
    {"Adjacent", [] { return Key{Slice{}, i64({0, 2, 1}), i64({3, 0, -1})}; }, {2, 3}, {3, 8, 7, 15, 20, 19}},
    {"Broadcast",
     [] { return Key{Slice{}, i64({0, 2}, {2, 1}), i64({3, 0, -1})}; },
     {2, 2, 3},
     {3, 0, 3, 11, 8, 11, 15, 12, 15, 23, 20, 23}},
    {"Apart", [] { return Key{i64({1, 0}), Slice{}, i64({3, 1})}; }, {2, 3}, {15, 19, 23, 1, 5, 9}},
    {"ApartByNewAxis", [] { return Key{i64({1, 0}), newaxis, i64({2, 1})}; }, {2, 1, 4}, {20, 21, 22, 23, 4, 5, 6, 7}},
    {"NumberBesideIndices", [] { return Key{0, Slice{}, i64({3, 1})}; }, {3, 2}, {3, 1, 7, 5, 11, 9}},
    {"NumberBetweenIndices", [] { return Key{i64({1, 0}), 2, i64({3, 1})}; }, {2}, {23, 9}},
    {"NumberOfRankZero", [] { return Key{i64({-1}, {}), i64({2, 0})}; }, {2, 4}, {20, 21, 22, 23, 12, 13, 14, 15}},
    {"Narrow", [] { return Key{of(DType::u8, {1, 0, 0}, {3})}; }, {3, 3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20,
                                                                              21, 22, 23, 0,  1,  2,  3,  4,  5,
                                                                              6,  7,  8,  9,  10, 11, 0,  1,  2,
                                                                              3,  4,  5,  6,  7,  8,  9,  10, 11}},
    {"None", [] { return Key{Slice{}, zeros({0}, DType::i64)}; }, {2, 0, 4}, {}},
    {"NoneOfTwo", [] { return Key{zeros({2, 0}, DType::i64), i64({1})}; }, {2, 0, 4}, {}},
    {"EllipsisOfNothing", [] { return Key{Slice{}, i64({0, 1}), ellipsis, i64({1, 2})}; }, {2, 2}, {1, 6, 13, 18}},
    {"Mask",
     [] { return Key{Slice{}, bools({true, false, true}, {3})}; },
     {2, 2, 4},
     {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23}},
    {"MaskOfTwoAxes",
     [] { return Key{Slice{}, bools({0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1}, {3, 4})}; },
     {2, 4},
     {1, 4, 5, 11, 13, 16, 17, 23}},
    {"MaskOfAllAxes", [] { return Key{lt(counting({2, 3, 4}) - 7, 1)}; }, {8}, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"MaskOfNothing", [] { return Key{zeros({2, 3}, DType::boolean)}; }, {0, 4}, {}},
    {"MaskAndIndices", [] { return Key{bools({true, true}, {2}), ellipsis, i64({3, 0})}; }, {2, 3}, {3, 7, 11, 12, 16, 20}},
    {"TwoMasks",
     [] { return Key{bools({false, true}, {2}), bools({true, false, true}, {3})}; },
     {2, 4},
     {12, 13, 14, 15, 20, 21, 22, 23}},
    {"True", [] { return Key{true, 1}; }, {1, 3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
    {"False", [] { return Key{Slice{}, false}; }, {2, 0, 3, 4}, {}},
    {"TrueBetweenIndices", [] { return Key{i64({1, 0}), true, i64({2, 1})}; }, {2, 4}, {20, 21, 22, 23, 4, 5, 6, 7}},
};
const Shape kShape = {2, 3, 4};

// A layout in which a tensor stores the same elements.
struct Layout {
  const char* name;
  Tensor (*arranged)(const Tensor& x);
};
const Layout kLayouts[] = {
    {"dense", [](const Tensor& x) { return clone(x); }},
    {"transposed", [](const Tensor& x) { return transpose(contiguous(transpose(x, 0, 2)), 0, 2); }},
    {"reversed", [](const Tensor& x) { return flip(contiguous(flip(x, {0, 2})), {0, 2}); }},
    {"part of a larger tensor",
     [](const Tensor& x) {
       Tensor whole = full({4, 3, 9}, 1, x.dtype());
       Tensor part = slice(slice(whole, 0, 1, 3), 2, 0, 8, 2);
       part.copy_(x);
       return part;
     }},
};

TEST(AdvancedIndexing, ChoosesWhatNumPyChooses) {
  for (const Row& row : kRows)
    for (const Layout& layout : kLayouts)
      EXPECT_TRUE(close(index(layout.arranged(counting(kShape)), row.key()), row.shape, row.chosen))
          << row.name << ", " << layout.name;
}

TEST(AdvancedIndexing, OfEveryDtype) {
  for (DType dtype : kRealDTypes) {
    if (dtype == DType::boolean) continue;
    for (const Row& row : kRows) {
      const Tensor out = index(counting(kShape, dtype), row.key());
      EXPECT_TRUE(close(out, row.shape, row.chosen)) << row.name << ' ' << dtype;
      EXPECT_EQ(out.dtype(), dtype);
    }
  }
  EXPECT_TRUE(close(index(bools({true, false}, {2}), {i64({1, 0, 0})}), {3}, {0, 1, 1}));
}

// --- Writing.

// The elements after x[chosen] = values for x = 0, 1, 2, ...; the last write to an element counts.
std::vector<double> written(const Row& row, const std::vector<double>& values, bool accumulate) {
  std::vector<double> all = elements(counting(kShape));
  for (size_t i = 0; i < row.chosen.size(); ++i) {
    double& element = all[static_cast<size_t>(row.chosen[i])];
    element = values[i] + (accumulate ? element : 0);
  }
  return all;
}

std::vector<double> values_for(const Row& row) {
  std::vector<double> values;
  for (size_t i = 0; i < row.chosen.size(); ++i) values.push_back(100 + static_cast<double>(i));
  return values;
}

TEST(AdvancedIndexing, PutWritesWhereTheKeyChooses) {
  for (const Row& row : kRows)
    for (const Layout& layout : kLayouts)
      for (bool accumulate : {false, true}) {
        const std::vector<double> values = values_for(row), expected = written(row, values, accumulate);
        Tensor x = layout.arranged(counting(kShape));
        EXPECT_TRUE(close(index_put(x, row.key(), f64(values, row.shape), accumulate), kShape, expected))
            << row.name << ", " << layout.name << accumulate;
        EXPECT_TRUE(close(x, kShape, elements(counting(kShape)))) << "x itself is left alone";
        index_put_(x, row.key(), f64(values, row.shape), accumulate);
        EXPECT_TRUE(close(x, kShape, expected)) << row.name << ", " << layout.name << accumulate << " in place";
      }
}

TEST(AdvancedIndexing, PutTakesNumbersAndOneElement) {
  for (const Row& row : kRows)
    for (bool accumulate : {false, true}) {
      const std::vector<double> expected = written(row, std::vector<double>(row.chosen.size(), 7), accumulate);
      Tensor x = counting(kShape), y = counting(kShape);
      index_put_(x, row.key(), 7, accumulate);
      EXPECT_TRUE(close(x, kShape, expected)) << row.name << accumulate;
      index_put_(y, row.key(), of(DType::i32, {7}, {1, 1, 1, 1, 1}), accumulate);
      EXPECT_TRUE(close(y, kShape, expected)) << row.name << accumulate;
    }
}

TEST(AdvancedIndexing, PutOfEveryDtypeKeepsBits) {
  for (DType dtype : kRealDTypes) {
    Tensor x = zeros({4}, dtype);
    index_put_(x, {i64({2, 0, 2})}, f64({0, 1, 1}));
    EXPECT_TRUE(close(x, {4}, {1, 0, 1, 0})) << dtype;
    EXPECT_EQ(x.dtype(), dtype);
    index_put_(x, {bools({true, false, false, true}, {4})}, f64({0, 1}), true);
    EXPECT_TRUE(close(x, {4}, {1, 0, 1, 1})) << dtype;
  }
  Tensor x = f64({std::nan(""), HUGE_VAL, 1, 2});
  index_put_(x, {i64({0, 1, 2})}, f64({-0.0, std::nan(""), -HUGE_VAL}));
  EXPECT_TRUE(same_bits(elements(x), {-0.0, std::nan(""), -HUGE_VAL, 2}));
}

TEST(AdvancedIndexing, TheLastOfManyWritesIsKept) {
  std::vector<int64_t> at;
  std::vector<double> values, expected(7);
  for (int64_t i = 0; i < 1000; ++i) {
    at.push_back(i * i % 7);
    values.push_back(static_cast<double>(i));
    expected[static_cast<size_t>(at.back())] = values.back();
  }
  Tensor x = zeros({7}, DType::f64);
  index_put_(x, {i64(at)}, f64(values));
  EXPECT_TRUE(close(x, {7}, expected));
}

TEST(AdvancedIndexing, AMasksElementsTakeValuesInOrder) {
  Tensor x = zeros({2, 3}, DType::f64);
  index_put_(x, {bools({true, false, true, false, true, false}, {2, 3})}, f64({1, 2, 3}));
  EXPECT_TRUE(close(x, {2, 3}, {1, 0, 2, 0, 3, 0}));
  index_put_(x, {ellipsis, bools({false, true, true}, {3})}, f64({7, 8}, {2, 1}));
  EXPECT_TRUE(close(x, {2, 3}, {1, 7, 7, 0, 8, 8}));
}

TEST(AdvancedIndexing, BasicKeysGiveViewsAndOthersCopies) {
  Tensor x = counting({2, 3});
  index(x, {1, Slice{}}).fill_(7);
  index(x, {ellipsis, newaxis, 0}).fill_(9);
  index(x, {i64({0})}).fill_(5);
  index(x, {true}).fill_(5);
  EXPECT_TRUE(close(x, {2, 3}, {9, 1, 2, 9, 7, 7}));
  EXPECT_TRUE(index(x, {}).is_same(x));
}

TEST(AdvancedIndexing, PutReadsAValueThatOverlapsFirst) {
  Tensor x = counting({5});
  index_put_(x, {i64({0, 1, 2, 3})}, slice(x, 0, 1, 5));
  EXPECT_TRUE(close(x, {5}, {1, 2, 3, 4, 4}));
  index_put_(x, {Slice{1}}, slice(x, 0, 0, 4));
  EXPECT_TRUE(close(x, {5}, {1, 1, 2, 3, 4}));
  index_put_(x, {Slice{.step = -1}}, x);
  EXPECT_TRUE(close(x, {5}, {4, 3, 2, 1, 1}));
}

TEST(AdvancedIndexing, IndicesAndValuesMayLieOnAnotherDevice) {
  Tensor x = counting({3});
  EXPECT_TRUE(close(index(x, {to(i64({2, 0}), other_device())}), {2}, {2, 0}));
  index_put_(x, {to(i64({2, 0}), other_device())}, to(f64({8, 9}), other_device()));
  EXPECT_TRUE(close(x, {3}, {9, 1, 8}));
}

// --- Errors.

TEST(AdvancedIndexing, OutOfRangeIsAnErrorAndTheDeviceGoesOn) {
  const Tensor x = counting({2, 3});
  for (int64_t bad : {int64_t(3), int64_t(-4), INT64_MAX, INT64_MIN}) {
    for (const Key& key : {Key{Slice{}, i64({0, bad})}, Key{i64({0, 1}), i64({bad, 0})}}) {
      EXPECT_TRUE(throws(Code::index_error, {}, [&] { elements(index(x, key)); })) << bad;
      EXPECT_TRUE(throws(Code::index_error, {}, [&] { elements(index_put(x, key, f64({1}))); })) << bad;
    }
    EXPECT_TRUE(close(index(x, {i64({-1})}), {1, 3}, {3, 4, 5}));
  }
  EXPECT_TRUE(throws(Code::index_error, {"[select]", "2", "axis 0"}, [&] { index(x, {2}); }));
  EXPECT_TRUE(throws(Code::index_error, {"[select]", "-4", "axis 1"}, [&] { index(x, {Slice{}, i64({-4}, {})}); }));
  EXPECT_TRUE(throws(Code::index_error, {"no elements"}, [] { index(zeros({0, 2}), {i64({0})}); }));
  for (int64_t bad : {2, -3}) {
    const Tensor none = zeros({2, 0});
    EXPECT_TRUE(throws(Code::index_error, {}, [&] {
      index(none, {i64({bad})});
      elements(counting({1}) + 1);  // devices may report late
    })) << bad;
  }
}

TEST(AdvancedIndexing, ErrorsNameWhatWasWrong) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(throws(Code::index_error, {"[index]", "3 axes", "(2, 3)"}, [&] { index(x, {0, 0, 0}); }));
  EXPECT_TRUE(throws(Code::index_error, {"[index]", "'...'", "2 times"}, [&] { index(x, {ellipsis, ellipsis}); }));
  EXPECT_TRUE(throws(Code::index_error, {"[index]", "f64", "cast"}, [&] { index(x, {f64({0})}); }));
  EXPECT_TRUE(throws(Code::index_error, {"[index]", "(3,)", "2"}, [&] { index(x, {bools({true, true, true}, {3})}); }));
  EXPECT_TRUE(
      throws(Code::index_error, {"[index]", "(2,)", "(3,)", "broadcast"}, [&] { index(x, {i64({0, 1}), i64({0, 1, 2})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"undefined"}, [&] { index(x, {Tensor()}); }));
  EXPECT_TRUE(throws(Code::invalid, {"step 0"}, [&] { index(x, {Slice{.step = 0}}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[index_put]", "(2,)", "(1, 3)"}, [&] { index_put(x, {i64({0})}, f64({1, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[index_put]", "(2,)", "(3,)"}, [&] { index_put(x, {0}, f64({1, 2})); }));
  EXPECT_TRUE(close(x, {2, 3}, {0, 1, 2, 3, 4, 5}));
}

TEST(AdvancedIndexing, WritesIntoLeavesAndExpandedViewsAreRefused) {
  Tensor w = f64({1, 2, 3}).requires_grad_();
  for (const Key& key : {Key{0}, Key{i64({0})}, Key{bools({true, false, false}, {3})}})
    EXPECT_TRUE(throws(Code::invalid, {"[index_put_]", "NoGrad"}, [&] { index_put_(w, key, 7); }));
  Tensor wide = expand(f64({1}), {3});
  EXPECT_TRUE(throws(Code::invalid, {"[index_put_]", "expanded", "clone"}, [&] { index_put_(wide, {i64({0})}, 7); }));
  const Tensor loss = sum(w * w);
  {
    const NoGrad unrecorded;
    index_put_(w, {i64({0})}, 7);
  }
  EXPECT_TRUE(close(w, {3}, {7, 2, 3}));
  EXPECT_TRUE(throws(Code::invalid, {"changed in place"}, [&] { loss.backward(); }));
}

// --- Recorded writes.

TEST(AdvancedIndexing, WritesAreRecordedLikeOtherWritesInPlace) {
  for (const Row& row : kRows)
    for (bool accumulate : {false, true})
      for (bool result : {false, true}) {
        Tensor w = counting(kShape).requires_grad_(), v = f64(values_for(row), row.shape).requires_grad_();
        const Tensor expected = index_put(result ? w * 2 : counting(kShape), row.key(), v * 3, accumulate);
        Tensor x = result ? w * 2 : counting(kShape);
        index_put_(x, row.key(), v * 3, accumulate);
        EXPECT_TRUE(close(x, kShape, elements(expected))) << row.name << accumulate << result;
        for (const Tensor& leaf : {w, v}) {
          const Tensor a = grad({sum(x * x)}, {leaf}, {.retain_graph = true, .allow_unused = true})[0],
                       b = grad({sum(expected * expected)}, {leaf}, {.retain_graph = true, .allow_unused = true})[0];
          ASSERT_EQ(a.defined(), b.defined()) << row.name << accumulate << result;
          if (!a.defined()) continue;
          EXPECT_TRUE(close(a, leaf.shape(), elements(b), 1e-13)) << row.name << accumulate << result;
        }
      }
}

TEST(AdvancedIndexing, RecordedWritesGoOnFromTheFormerOnes) {
  Tensor w = f64({1, 2, 3}).requires_grad_(), x = zeros({2, 3}, DType::f64);
  for (int64_t i = 0; i < 3; ++i) index_put_(x, {ellipsis, i64({i})}, reshape(slice(w, 0, i, i + 1), {1, 1}) * (i + 1));
  index_put_(x, {1, bools({true, false, true}, {3})}, 5);
  EXPECT_TRUE(close(x, {2, 3}, {1, 4, 9, 5, 4, 5}));
  EXPECT_TRUE(close(grad({sum(x)}, {w})[0], {3}, {1, 4, 3}));
}

}  // namespace
}  // namespace plugrad::test
