// Factories and rearrangements: refused operands, and shared memory of results. tests/torch compares elements and gradients
// with PyTorch's.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

TEST(Rearrangement, FactoriesOfEachDtype) {
  for (const DType dtype : kRealDTypes) {
    EXPECT_EQ(empty({2, 3}, dtype).dtype(), dtype);
    if (dtype == DType::boolean) continue;
    EXPECT_EQ(linspace(0, 4, 3, dtype).dtype(), dtype);
    EXPECT_TRUE(close(linspace(0, 4, 3, dtype), {3}, {0, 2, 4}));
  }
  EXPECT_EQ(empty_like(counting({2, 3})).shape(), (Shape{2, 3}));
  EXPECT_TRUE(close(logspace(0, 2, 3, 10, DType::bf16), {3}, {1, 10, 100}));
  // The first and the last number are exact, and the numbers between them are symmetric.
  const std::vector<double> third = elements(linspace(-0.1, 0.1, 4));
  EXPECT_EQ(third[1], -third[2]);
  EXPECT_EQ(third[3], static_cast<double>(0.1f));
  EXPECT_TRUE(throws(Code::invalid, {"[linspace]", "-1"}, [] { linspace(0, 1, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"0.5", "i64"}, [] { linspace(0.5, 1, 3, DType::i64); }));
  EXPECT_TRUE(throws(Code::invalid, {"[linspace]", "bool"}, [] { linspace(0, 1, 2, DType::boolean); }));
  EXPECT_TRUE(throws(Code::invalid, {"i64", "floating"}, [] { logspace(0, 1, 2, 10, DType::i64); }));
}

TEST(Rearrangement, GridsRefuse) {
  const Tensor v = counting({3}), m = counting({2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"[meshgrid]", "(2, 3)"}, [&] { meshgrid({v, m}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[meshgrid]", "no tensors"}, [] { meshgrid({}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cartesian_prod]", "(2, 3)"}, [&] { cartesian_prod({m}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[combinations]", "rank 1"}, [&] { combinations(m); }));
  EXPECT_TRUE(throws(Code::invalid, {"[combinations]", "r is -1"}, [&] { combinations(v, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[tril_indices]", "-1"}, [] { tril_indices(-1, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[triu_indices]", "-2"}, [] { triu_indices(1, -2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[vander]", "(2, 3)"}, [&] { vander(m); }));
  EXPECT_TRUE(throws(Code::invalid, {"[vander]", "-1 columns"}, [&] { vander(v, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[block_diag]", "(1, 2, 3)"}, [] { block_diag({counting({1, 2, 3})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[block_diag]", "no tensors"}, [] { block_diag({}); }));
  EXPECT_EQ(tril_indices(2, 2, 0, DType::i32).dtype(), DType::i32);
}

TEST(Rearrangement, JoiningRefusesAndPromotes) {
  const Tensor m = counting({2, 3}), whole = i64({1, 2, 3});
  EXPECT_EQ(vstack({m, whole}).dtype(), DType::f64);
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "(2, 3)"}, [&] { hstack({m, counting({3, 3})}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "no tensors"}, [] { hstack({}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[broadcast_shapes]", "(2, 3)"}, [&] { broadcast_tensors({m, counting({2})}); }));
  EXPECT_TRUE(broadcast_tensors({}).empty());
  EXPECT_TRUE(throws(Code::invalid, {"[expand]", "(2, 3)"}, [&] { broadcast_to(m, {3, 3}); }));
}

TEST(Rearrangement, ViewsShareElements) {
  Tensor x = counting({2, 6});
  const Tensor views[] = {flatten(x),    ravel(x),       unflatten(x, 1, {2, 3}),  view_as(x, counting({3, 4})),
                          fliplr(x),     rot90(x),       tensor_split(x, 4, 1)[2], as_strided(x, {3}, {4}, 1),
                          atleast_3d(x), squeeze(x, {0})};
  x.fill_(7);
  for (const Tensor& view : views)
    EXPECT_TRUE(close(view, view.shape(), std::vector<double>(static_cast<size_t>(view.count()), 7)));
  EXPECT_TRUE(flatten(x, 1, 1).is_same(x));
  EXPECT_TRUE(squeeze(x, {1}).is_same(x));
  EXPECT_TRUE(ravel(transpose(x)).is_contiguous());
}

TEST(Rearrangement, ViewsRefuse) {
  const Tensor x = counting({2, 6});
  EXPECT_TRUE(throws(Code::invalid, {"[flatten]", "axis 1", "axis 0"}, [&] { flatten(x, 1, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[flatten]", "axis 2"}, [&] { flatten(x, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[unflatten]", "(4, 2)", "(2, 6)"}, [&] { unflatten(x, 1, {4, 2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[unflatten]", "(4, -1)"}, [&] { unflatten(x, 1, {4, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[reshape]", "12", "(5,)"}, [&] { view_as(x, counting({5})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[as_strided]", "12 elements"}, [&] { as_strided(x, {3}, {6}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[as_strided]", "offset -1"}, [&] { as_strided(x, {3}, {1}, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[as_strided]", "(3, 2)"}, [&] { as_strided(x, {3, 2}, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[as_strided]", "(-1,)"}, [&] { as_strided(x, {3}, {-1}, 5); }));
  EXPECT_TRUE(throws(Code::invalid, {"[as_strided]", "contiguous"}, [&] { as_strided(transpose(x), {3}, {1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fill_]", "share memory"}, [&] { as_strided(x, {3}, {0}).fill_(1); }));
  EXPECT_TRUE(close(as_strided(x, {0, 5}, {100, 1}), {0, 5}, {}));
}

TEST(Rearrangement, PartsRefuse) {
  const Tensor x = counting({2, 6}), v = counting({3});
  EXPECT_TRUE(throws(Code::invalid, {"[tensor_split]", "0 sections"}, [&] { tensor_split(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[hsplit]", "4 sections", "(2, 6)"}, [&] { hsplit(x, 4); }));
  EXPECT_TRUE(throws(Code::invalid, {"[vsplit]", "rank 2"}, [&] { vsplit(v, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[dsplit]", "rank 3"}, [&] { dsplit(x, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fliplr]", "(3,)"}, [&] { fliplr(v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[flipud]", "rank 0"}, [] { flipud(counting({})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[rot90]", "(0,)"}, [&] { rot90(x, 1, {0}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[rot90]", "twice"}, [&] { rot90(x, 1, {1, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pad]", "2", "(2, 6)"}, [&] { pad(x, {0, 0, 2, 0}, PadMode::reflect); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pad]", "too few"}, [&] { pad(x, {7, 0}, PadMode::circular); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pad]", "too few"}, [] { pad(counting({0}), {1, 0}, PadMode::replicate); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[repeat_interleave]", "(2,)", "extent 6"}, [&] { repeat_interleave(x, i64({1, 2}), 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[repeat_interleave]", "negative"}, [&] { repeat_interleave(v, i64({1, -1, 1}), 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[repeat_interleave]", "integer"}, [&] { repeat_interleave(v, v, 0); }));
}

TEST(Rearrangement, ImagesRefuse) {
  const Tensor x = counting({6, 3, 4});
  EXPECT_TRUE(throws(Code::invalid, {"[pixel_shuffle]", "(6, 3, 4)", "4"}, [&] { pixel_shuffle(x, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pixel_unshuffle]", "(6, 3, 4)"}, [&] { pixel_unshuffle(x, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pixel_shuffle]", "factor is 0"}, [&] { pixel_shuffle(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pixel_shuffle]", "(.., c, h, w)"}, [] { pixel_shuffle(counting({2, 2}), 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[channel_shuffle]", "2 groups"}, [&] { channel_shuffle(x, 2); }));
}

}  // namespace
}  // namespace plugrad::test
