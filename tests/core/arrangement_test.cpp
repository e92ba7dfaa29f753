// Compares functions that rearrange elements with index arithmetic.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

TEST(Arrangement, PadAddsAndRemoves) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(close(pad(x, {1, 0}, 9), {2, 4}, {9, 0, 1, 2, 9, 3, 4, 5}));
  EXPECT_TRUE(close(pad(x, {0, 1, 1, 0}), {3, 4}, {0, 0, 0, 0, 0, 1, 2, 0, 3, 4, 5, 0}));
  EXPECT_TRUE(close(pad(x, {-1, 1}, 7), {2, 3}, {1, 2, 7, 4, 5, 7}));
  EXPECT_TRUE(close(pad(x, {-4, 3}, 7), {2, 2}, {7, 7, 7, 7}));
  EXPECT_TRUE(close(pad(x, {3, -4}, 7), {2, 2}, {7, 7, 7, 7}));
  EXPECT_TRUE(close(pad(x, {-2, -1}), {2, 0}, {}));
  EXPECT_TRUE(close(pad(transpose(x), {1, 0}, -1), {3, 3}, {-1, 0, 3, -1, 1, 4, -1, 2, 5}));
  EXPECT_TRUE(close(pad(zeros({2, 0}), {1, 1}, 4), {2, 2}, {4, 4, 4, 4}));
  EXPECT_TRUE(close(pad(f64({5}, {}), {}), {}, {5}));
  EXPECT_TRUE(close(pad(i64({5}), {0, 1}, 3), {2}, {5, 3}));
  EXPECT_TRUE(throws(Code::invalid, {"[pad]", "3 pads"}, [&] { pad(x, {1, 2, 3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pad]", "axis 1"}, [&] { pad(x, {-2, -2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[pad]", "6 pads", "(2, 3)"}, [&] { pad(x, {1, 1, 1, 1, 1, 1}); }));
}

TEST(Arrangement, SplitAndChunkAreViews) {
  Tensor x = counting({5, 2});
  const auto parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(close(parts[1], {2, 2}, {4, 5, 6, 7}));
  EXPECT_TRUE(close(parts[2], {1, 2}, {8, 9}));
  const auto columns = split(transpose(x), {1, 4}, -1);
  EXPECT_TRUE(close(columns[1], {2, 4}, {2, 4, 6, 8, 3, 5, 7, 9}));
  EXPECT_EQ(chunk(x, 4).size(), 3u);
  EXPECT_TRUE(close(chunk(x, 2)[1], {2, 2}, {6, 7, 8, 9}));
  EXPECT_EQ(chunk(zeros({0}), 3).size(), 3u);
  EXPECT_EQ(split(zeros({0}), 3).size(), 1u);
  x.fill_(1);
  EXPECT_TRUE(close(parts[2], {1, 2}, {1, 1}));
  EXPECT_TRUE(throws(Code::invalid, {"[split]", "4 elements", "(5, 2)"}, [&] { split(x, {1, 3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[split]", "below 0"}, [&] { split(x, {6, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[split]", "1 or more"}, [&] { split(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[chunk]", "1 or more"}, [&] { chunk(x, 0); }));
}

TEST(Arrangement, FlipAndRoll) {
  const Tensor x = counting({2, 3});
  EXPECT_TRUE(close(flip(x, {1}), {2, 3}, {2, 1, 0, 5, 4, 3}));
  EXPECT_TRUE(close(flip(x, {0, -1}), {2, 3}, {5, 4, 3, 2, 1, 0}));
  EXPECT_TRUE(close(flip(flip(x, {0}), {0}), {2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(close(flip(x, {}), {2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(close(flip(zeros({0, 2}), {0}), {0, 2}, {}));
  EXPECT_TRUE(close(roll(x, {1}), {2, 3}, {5, 0, 1, 2, 3, 4}));
  EXPECT_TRUE(close(roll(x, {-1}, {1}), {2, 3}, {1, 2, 0, 4, 5, 3}));
  EXPECT_TRUE(close(roll(x, {7, 3}, {-1, 0}), {2, 3}, {5, 3, 4, 2, 0, 1}));
  EXPECT_TRUE(close(roll(transpose(x), {-5}, {0}), {3, 2}, {2, 5, 0, 3, 1, 4}));
  EXPECT_TRUE(close(roll(zeros({0}), {1}, {0}), {0}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[flip]", "twice"}, [&] { flip(x, {0, -2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[roll]", "2 shifts", "1 axes"}, [&] { roll(x, {1, 2}, {0}); }));
}

TEST(Arrangement, RepeatsByIndex) {
  const Shape shape = {2, 3};
  for (const Shape& repeats : {Shape{1, 1}, Shape{2, 3}, Shape{2, 1, 2}, Shape{0, 2}, Shape{2, 0}}) {
    Shape whole;
    const size_t added = repeats.size() - 2;
    for (size_t i = 0; i < repeats.size(); ++i) whole.push_back(repeats[i] * (i < added ? 1 : shape[i - added]));
    std::vector<double> expected;
    for (const Shape& at : positions(whole)) expected.push_back(static_cast<double>(at[added] % 2 * 3 + at[added + 1] % 3));
    EXPECT_TRUE(close(repeat(counting(shape), repeats), whole, expected)) << repeats;
    EXPECT_TRUE(close(tile(transpose(counting({3, 2})), repeats).shape() == whole ? f64({1}) : f64({0}), {1}, {1}));
  }
  EXPECT_TRUE(close(tile(transpose(counting({3, 2})), {2}), {2, 6}, {0, 2, 4, 0, 2, 4, 1, 3, 5, 1, 3, 5}));
  EXPECT_TRUE(close(repeat(f64({4}, {}), {3}), {3}, {4, 4, 4}));
  EXPECT_TRUE(close(repeat_interleave(counting(shape), 2, -1), {2, 6}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_TRUE(close(repeat_interleave(counting(shape), 2, 0), {4, 3}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_TRUE(
      close(repeat(ones({1, 1, 1, 1, 1, 1, 1, 2}), {1, 1, 1, 1, 1, 1, 2, 1}), {1, 1, 1, 1, 1, 1, 2, 2}, {1, 1, 1, 1}));
  EXPECT_TRUE(throws(Code::invalid, {"[repeat]", "(2,)", "(2, 3)"}, [&] { repeat(counting(shape), {2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[repeat]", "-1"}, [&] { repeat(counting(shape), {-1, 1}); }));
}

TEST(Arrangement, MovedimKeepsTheOrderOfTheOthers) {
  const Tensor x = zeros({2, 3, 4, 5});
  EXPECT_EQ(movedim(x, {0}, {-1}).shape(), (Shape{3, 4, 5, 2}));
  EXPECT_EQ(movedim(x, {-1}, {0}).shape(), (Shape{5, 2, 3, 4}));
  EXPECT_EQ(movedim(x, {0, 1}, {2, 0}).shape(), (Shape{3, 4, 2, 5}));
  EXPECT_EQ(movedim(x, {3, 0}, {1, 3}).shape(), (Shape{3, 5, 4, 2}));
  EXPECT_EQ(movedim(x, {}, {}).shape(), x.shape());
  EXPECT_TRUE(close(movedim(counting({2, 3}), {0}, {1}), {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(throws(Code::invalid, {"[movedim]", "(0, 1)", "(0,)"}, [&] { movedim(x, {0, 1}, {0}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[movedim]", "twice"}, [&] { movedim(x, {0, 1}, {2, 2}); }));
}

TEST(Arrangement, UnfoldIsAViewOfWindows) {
  const Shape shape = {2, 7, 3};
  for (int64_t size : {1, 2, 3, 7})
    for (int64_t step : {1, 2, 3, 9}) {
      const Shape whole = {2, (7 - size) / step + 1, 3, size};
      std::vector<double> expected;
      for (const Shape& at : positions(whole))
        expected.push_back(static_cast<double>(offset({at[0], at[1] * step + at[3], at[2]}, shape)));
      EXPECT_TRUE(close(unfold(counting(shape), -2, size, step), whole, expected)) << size << step;
      const Tensor strided = permute(contiguous(permute(counting(shape), {2, 0, 1})), {1, 2, 0});
      EXPECT_TRUE(close(unfold(strided, 1, size, step), whole, expected)) << size << step;
    }
  Tensor x = counting({4});
  Tensor windows = unfold(x, 0, 2, 1);
  x.fill_(5);
  EXPECT_TRUE(close(windows, {3, 2}, {5, 5, 5, 5, 5, 5}));
  EXPECT_TRUE(close(unfold(zeros({0, 3}), 1, 2, 1), {0, 2, 2}, {}));
  EXPECT_TRUE(throws(Code::invalid, {"[fill_]", "share memory"}, [&] { windows.fill_(1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[unfold]", "5 elements", "(4,)"}, [&] { unfold(x, 0, 5, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[unfold]", "step 0"}, [&] { unfold(x, 0, 1, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[unfold]", "rank 8"}, [] { unfold(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0, 1, 1); }));
}

TEST(Arrangement, GradientsOfWindowsAdd) {
  const Tensor x = counting({5}).requires_grad_();
  EXPECT_TRUE(close(grad({sum(unfold(x, 0, 3, 1))}, {x})[0], {5}, {1, 2, 3, 2, 1}));
  EXPECT_TRUE(close(grad({sum(unfold(x, 0, 2, 3))}, {x})[0], {5}, {1, 1, 0, 1, 1}));
}

}  // namespace
}  // namespace plugrad::test
