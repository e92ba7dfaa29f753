// Tensors larger than the blocks of one launch: kernels that loop over tiles, reductions of lines that are cut into
// segments, rows of any length, transposing copies, sums in a fixed order. The CPU computes the expected values.
#include <plugrad/plugrad.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace plugrad::test {
namespace {

constexpr int64_t kMany = (1 << 20) + 3;

class Sizes : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device("cpu")) GTEST_SKIP() << "no plugin for cpu";
  }

  static Tensor uniform(const Shape& shape, DType dtype = DType::f32) { return rand(shape, dtype, Device("cpu"), -1, 1); }
  static Tensor here(const Tensor& x) { return to(x, default_device()); }
  static std::vector<double> numbers(const Tensor& x) { return cast(to(x, Device("cpu")), DType::f64).to_vector<double>(); }

  static void expect_equal(const Tensor& want, const Tensor& got) { expect_close(want, got, 0); }
  // Expects elements to differ by at most eps times the larger of the element and 1.
  static void expect_close(const Tensor& want, const Tensor& got, double eps) {
    ASSERT_EQ(want.shape(), got.shape());
    const double one = want.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                  : static_cast<double>(std::numeric_limits<float>::epsilon());
    const std::vector<double> a = numbers(want), b = numbers(got);
    int differ = 0;
    for (size_t i = 0; i < a.size() && differ < 5; ++i)
      if (!(std::abs(a[i] - b[i]) <= eps * one * std::max(1.0, std::abs(a[i])))) {
        ADD_FAILURE() << "element " << i << ": " << b[i] << " instead of " << a[i];
        ++differ;
      }
  }
  // Compares f of the same operands on the CPU and on this device.
  static void compare(const std::function<Tensor(const Tensor&, const Tensor&)>& f, const Tensor& a, const Tensor& b,
                      double eps = 0) {
    expect_close(f(a, b), f(here(a), here(b)), eps);
  }
};

TEST_F(Sizes, ElementwiseOpsOfAMillionElements) {
  const Tensor a = uniform({kMany}), b = uniform({kMany});
  compare([](const Tensor& x, const Tensor& y) { return x + y; }, a, b);
  compare([](const Tensor& x, const Tensor&) { return mul(relu(x), 3); }, a, b);
  compare([](const Tensor& x, const Tensor& y) { return lt(x, y); }, a, b);
  compare([](const Tensor& x, const Tensor& y) { return slice(x, 0, 1, kMany) * slice(y, 0, 0, kMany - 1); }, a, b);
  compare([](const Tensor& x, const Tensor& y) { return slice(x, 0, 0, kMany, 3) - slice(y, 0, 0, kMany, 3); }, a, b);
  compare([](const Tensor& x, const Tensor&) { return cast(mul(x, 1000), DType::i64); }, a, b);
}

TEST_F(Sizes, ElementwiseOpsOfTurnedAndBroadcastOperands) {
  const Tensor a = uniform({1030, 700}), b = uniform({700, 1030}), row = uniform({700}), column = uniform({1030, 1});
  compare([](const Tensor& x, const Tensor& y) { return x + transpose(y); }, a, b);
  compare([](const Tensor& x, const Tensor& y) { return x * y; }, a, row);
  compare([](const Tensor& x, const Tensor& y) { return x * y; }, a, column);
  compare([](const Tensor& x, const Tensor& y) { return x - y; }, column, row);
}

TEST_F(Sizes, CopiesThatTurnAxes) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = uniform({5, 77, 300}, dtype);
    for (const Shape& axes : {Shape{0, 2, 1}, Shape{2, 1, 0}, Shape{1, 2, 0}, Shape{2, 0, 1}, Shape{1, 0, 2}})
      compare([&](const Tensor& y, const Tensor&) { return contiguous(permute(y, axes)); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return contiguous(transpose(lt(y, 0))); }, x, x);
  }
}

TEST_F(Sizes, SumsOfLinesThatAreCutIntoSegments) {
  const Tensor long_one = uniform({kMany}, DType::f64);
  compare([](const Tensor& x, const Tensor&) { return sum(x); }, long_one, long_one, 1e5);
  const Tensor cube = uniform({40, 50, 600});
  for (const Shape& axes : {Shape{0}, Shape{1}, Shape{2}, Shape{0, 1}, Shape{0, 2}, Shape{1, 2}, Shape{0, 1, 2}})
    compare([&](const Tensor& x, const Tensor&) { return sum(x, axes); }, cube, cube, 20000);
  const Tensor wide = uniform({3, 200000}), tall = uniform({200000, 3});
  compare([](const Tensor& x, const Tensor&) { return sum(x, {1}); }, wide, wide, 20000);
  compare([](const Tensor& x, const Tensor&) { return sum(x, {0}); }, tall, tall, 20000);
  compare([](const Tensor& x, const Tensor&) { return sum(lt(x, 0)); }, tall, tall);
}

// A kernel reads adjacent columns together if they form whole aligned packs, otherwise one by one.
TEST_F(Sizes, ColumnsOfAnyNumberAndAlignment) {
  const Shape shapes[] = {{5000, 1}, {5000, 4}, {3000, 7}, {2049, 64}, {700, 260}, {3, 4100}, {1, 1000}, {20000, 36}};
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::boolean})
    for (const Shape& shape : shapes) {
      const Tensor drawn = mul(uniform(shape, DType::f64), 9);
      const Tensor x = dtype == DType::boolean ? lt(drawn, 0) : cast(drawn, dtype);
      compare([](const Tensor& y, const Tensor&) { return sum(y, {0}); }, x, x, 20000);
      if (shape[1] > 4) compare([](const Tensor& y, const Tensor&) { return sum(slice(y, 1, 1, 5), {0}); }, x, x, 20000);
      if (dtype == DType::boolean) continue;
      compare([](const Tensor& y, const Tensor&) { return max(y, {0}); }, x, x);
      compare([](const Tensor& y, const Tensor&) { return argmax(y, {0}); }, x, x);
    }
}

TEST_F(Sizes, ReductionsOfTurnedAndOfEightAxes) {
  const Tensor x = uniform({3, 2, 4, 3, 2, 5, 4, 8});
  const Shape all_axes[] = {{0}, {7}, {0, 2, 4, 6}, {1, 3, 5, 7}, {3, 4}, {0, 1, 2, 3, 4, 5, 6}, {}};
  for (const Shape& axes : all_axes)
    for (const Shape& order :
         {Shape{0, 1, 2, 3, 4, 5, 6, 7}, Shape{7, 6, 5, 4, 3, 2, 1, 0}, Shape{1, 0, 3, 2, 7, 4, 6, 5}}) {
      compare([&](const Tensor& y, const Tensor&) { return sum(permute(y, order), axes); }, x, x, 20000);
      compare([&](const Tensor& y, const Tensor&) { return argmax(permute(y, order), axes); }, x, x);
    }
  const Tensor row = uniform({1, 1000});
  compare([](const Tensor& y, const Tensor&) { return sum(expand(y, {3000, 1000}), {0}); }, row, row, 20000);
  compare([](const Tensor& y, const Tensor&) { return sum(expand(y, {3000, 1000}), {1}); }, row, row, 20000);
}

// The block that finishes last combines the segments: each launch must find its counters at 0 and reset them.
TEST_F(Sizes, CutSumsHaveTheSameBitsEachTime) {
  const Tensor line = here(uniform({kMany})), table = here(uniform({30000, 24}));
  const Tensor of_line = sum(line), of_columns = sum(table, {0}), of_rows = argmax(table, {0});
  for (int i = 0; i < 5; ++i) {
    expect_equal(of_line, sum(line));
    expect_equal(of_columns, sum(table, {0}));
    expect_equal(of_rows, argmax(table, {0}));
  }
}

TEST_F(Sizes, ExtremesAndTheFirstOfEquals) {
  const Tensor x = cast(mul(uniform({60, 9000}), 7), DType::i64);  // many are equal
  for (const Shape& axes : {Shape{0}, Shape{1}, Shape{0, 1}}) {
    compare([&](const Tensor& y, const Tensor&) { return argmax(y, axes); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return argmax(cast(y, DType::f32), axes); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return max(y, axes); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return min(y, axes); }, x, x);
  }
}

Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& seed) {
  Tensor leaf = contiguous(x).detach();
  leaf.requires_grad_();
  f(leaf).backward(seed);
  return leaf.grad();
}

// Lines that fit into the registers of a few threads, lines for one block, longer lines; strided and misaligned lines.
TEST_F(Sizes, LogSoftmaxOfLinesOfAnyLengthAndLayout) {
  const Shape shapes[] = {{3000, 10}, {40, 1}, {1, 40}, {70, 64}, {33, 1001}, {3, 4096}, {2, 4100}, {2, 9001}, {2, 40000}};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : shapes) {
      const Tensor x = mul(uniform(shape, dtype), 20), seed = uniform(shape, dtype);
      for (const int axis : {0, 1}) {
        const auto f = [&](const Tensor& y) { return log_softmax(y, axis); };
        compare([&](const Tensor& y, const Tensor&) { return f(y); }, x, x, 300);
        compare([&](const Tensor& y, const Tensor&) { return f(transpose(y)); }, x, x, 300);
        compare([&](const Tensor& y, const Tensor&) { return f(slice(y, 1, shape[1] / 3, shape[1])); }, x, x, 300);
        compare([&](const Tensor& y, const Tensor& s) { return gradient(f, y, s); }, x, seed, 20000);
      }
    }
}

TEST_F(Sizes, CrossEntropyOfRowsOfAnyLength) {
  for (const Shape& shape : {Shape{3000, 10}, Shape{50, 1}, Shape{1, 7}, Shape{65, 64}, Shape{30, 1001}, Shape{3, 50004}}) {
    const Tensor x = mul(uniform(shape), 20);
    const Tensor target = cast(mul(rand({shape[0]}, DType::f64, Device("cpu")), static_cast<double>(shape[1])), DType::i64);
    const auto f = [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t, Reduction::none); };
    compare(f, x, target, 300);
    compare([&](const Tensor& y, const Tensor& t) { return f(transpose(contiguous(transpose(y))), t); }, x, target, 300);
    compare(
        [&](const Tensor& y, const Tensor& t) {
          return gradient([&](const Tensor& z) { return f(z, t); }, y, mul(ones(t.shape(), DType::f32, t.device()), 2));
        },
        x, target, 300);
  }
}

TEST_F(Sizes, LinesWithInfinitiesAndNaN) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {int64_t(8), int64_t(5001)})
    for (const float special : {inf, -inf, nan}) {
      std::vector<float> values(static_cast<size_t>(3 * n), 1.0f);
      values[static_cast<size_t>(n - 1)] = special;                                  // the last of line 0
      for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(n + i)] = special;  // all of line 1
      const std::vector<double> got = numbers(log_softmax(Tensor::from(values, {3, n})));
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(special == -inf, !std::isnan(got[static_cast<size_t>(i)]));
        EXPECT_TRUE(std::isnan(got[static_cast<size_t>(n + i)]));
        EXPECT_NEAR(got[static_cast<size_t>(2 * n + i)], -std::log(static_cast<double>(n)), 1e-5);
      }
      EXPECT_EQ(got[static_cast<size_t>(n - 1)] == -inf, special == -inf);
    }
}

TEST_F(Sizes, AddingByIndexInOneOrderHasTheSameBitsEachTime) {
  struct Case {
    Shape target, source;
    int axis;
  };
  const Case cases[] = {
      {{50}, {20000}, 0}, {{7, 300}, {500, 300}, 0}, {{300, 7}, {300, 40}, 1}, {{9, 20000}, {70, 20000}, 0}};
  const bool before = deterministic();
  for (const Case& c : cases) {
    const Tensor source = uniform(c.source), target = uniform(c.target);
    const double rows = static_cast<double>(c.target[static_cast<size_t>(c.axis)]);
    const Tensor index = cast(mul(rand(c.source, DType::f64, Device("cpu")), rows), DType::i64);
    const auto add = [&](Device d) { return scatter_add(to(target, d), c.axis, to(index, d), to(source, d)); };
    set_deterministic(false);
    expect_close(add(Device("cpu")), add(default_device()), 3000);
    set_deterministic(true);
    const Tensor first = add(default_device());
    expect_close(add(Device("cpu")), first, 3000);
    expect_equal(first, add(default_device()));
    set_deterministic(before);
  }
}

// A GPU's atomic additions treat denormals as 0 unless the kernel corrects them.
TEST_F(Sizes, AddingByIndexKeepsDenormals) {
  const float tiny = 3e-40f, least = std::numeric_limits<float>::min(), inf = std::numeric_limits<float>::infinity();
  if (mul(full({1}, least), 0.5).item<float>() == 0) GTEST_SKIP() << "the device flushes denormal numbers";
  const std::vector<float> target{0, tiny, tiny, 1.5f * least, least, 1, inf, -tiny, 0};
  const std::vector<float> source{tiny, tiny, least, -least, tiny, tiny, tiny, tiny, -tiny};
  const Tensor index = arange(0, 9, 1, DType::i64);
  const std::vector<float> got =
      scatter_add(Tensor::from(target, {9}), 0, index, Tensor::from(source, {9})).to_vector<float>();
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(got[i], target[i] + source[i]) << "element " << i;
  const Tensor many = full({3000}, tiny), one = scatter_add(zeros({1}), 0, zeros({3000}, DType::i64), many);
  // the sum of 3000 of them is not denormal
  EXPECT_NEAR(static_cast<double>(one.item<float>()) / (3000 * static_cast<double>(tiny)), 1, 1e-4);
}

TEST_F(Sizes, GatherFromLongLines) {
  const Tensor x = uniform({400, 900});
  const Tensor index = cast(mul(rand({3000, 900}, DType::f64, Device("cpu")), 400), DType::i64);
  compare([](const Tensor& y, const Tensor& i) { return gather(y, 0, i); }, x, index);
  compare([](const Tensor& y, const Tensor& i) { return gather(transpose(y), 1, transpose(i)); }, x, index);
}

// Rows of a table, as of an embedding, which are gathered in packs if aligned.
TEST_F(Sizes, GatherOfWholeRowsAndTheirGradient) {
  const Tensor rows = cast(mul(rand({2000, 1}, DType::f64, Device("cpu")), 50), DType::i64);
  for (const int64_t width : {1, 3, 64, 65, 264})
    for (const DType dtype : {DType::f32, DType::f64, DType::boolean}) {
      const Tensor drawn = uniform({50, width + 1}, DType::f64),
                   x = dtype == DType::boolean ? lt(drawn, 0) : cast(drawn, dtype);
      for (const int64_t skipped : {0, 1}) {
        const auto f = [&](const Tensor& y, const Tensor& i) {
          const Tensor table = skipped ? slice(y, 1, 1, width + 1) : contiguous(slice(y, 1, 0, width));
          return gather(table, 0, expand(i, {2000, width}));
        };
        compare(f, x, rows);
        if (dtype != DType::f32) continue;
        compare(
            [&](const Tensor& y, const Tensor& i) {
              return gradient([&](const Tensor& z) { return f(z, i); }, y, ones({2000, width}, dtype, y.device()));
            },
            x, rows);
      }
    }
}

TEST_F(Sizes, RandomNumbersAreTheCpusInEachLayout) {
  for (const int64_t n : {kMany, int64_t(262145)}) {
    manual_seed(11);
    const Tensor want = rand({n}, DType::f32, Device("cpu")), bell = randn({n}, DType::f32, Device("cpu"));
    manual_seed(11);
    expect_equal(want, rand({n}, DType::f32, default_device()));
    expect_close(bell, randn({n}, DType::f32, default_device()), 64);
  }
}

TEST_F(Sizes, MatrixProductsOfSeveralTilesAndBatches) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = uniform({130, 300}, dtype), b = uniform({300, 70}, dtype), batch = uniform({3, 130, 300}, dtype);
    compare([](const Tensor& x, const Tensor& y) { return matmul(x, y); }, a, b, 2000);
    compare([](const Tensor& x, const Tensor& y) { return matmul(transpose(y), transpose(x)); }, a, b, 2000);
    compare([](const Tensor& x, const Tensor& y) { return matmul(x, y); }, batch, b, 2000);
    compare([](const Tensor& x, const Tensor& y) { return matmul(transpose(x), y); }, batch, batch, 2000);
  }
  const Tensor row = uniform({1, 9000}), column = uniform({9000, 1});
  compare([](const Tensor& x, const Tensor& y) { return matmul(x, y); }, row, column, 5000);
  compare([](const Tensor& x, const Tensor& y) { return matmul(y, slice(x, 1, 0, 50)); }, row, column);
}

}  // namespace
}  // namespace plugrad::test
