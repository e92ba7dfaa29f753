// Tensors larger than one launch's blocks: kernels whose threads go on to further tiles, reductions in two passes, copies that turn
// axes, sums in a fixed order. The values are the CPU's.
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
  // Beside each other within so many eps of the larger one or 1.
  static void expect_close(const Tensor& want, const Tensor& got, double eps) {
    ASSERT_EQ(want.shape(), got.shape());
    const double one =
        want.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon() : double(std::numeric_limits<float>::epsilon());
    const std::vector<double> a = numbers(want), b = numbers(got);
    int differ = 0;
    for (size_t i = 0; i < a.size() && differ < 5; ++i)
      if (!(std::abs(a[i] - b[i]) <= eps * one * std::max(1.0, std::abs(a[i])))) {
        ADD_FAILURE() << "element " << i << ": " << b[i] << " instead of " << a[i];
        ++differ;
      }
  }
  // The same function of the same operands, on the CPU and here.
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

TEST_F(Sizes, SumsInTwoPasses) {
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

TEST_F(Sizes, ExtremesAndTheFirstOfEquals) {
  const Tensor x = cast(mul(uniform({60, 9000}), 7), DType::i64);  // many are equal
  for (const Shape& axes : {Shape{0}, Shape{1}, Shape{0, 1}}) {
    compare([&](const Tensor& y, const Tensor&) { return argmax(y, axes); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return argmax(cast(y, DType::f32), axes); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return max(y, axes); }, x, x);
    compare([&](const Tensor& y, const Tensor&) { return min(y, axes); }, x, x);
  }
}

TEST_F(Sizes, LogSoftmaxOfManyAndOfLongLines) {
  for (const Shape& shape : {Shape{3000, 10}, Shape{10, 3000}, Shape{2, 40000}}) {
    const Tensor x = mul(uniform(shape), 20);
    for (const int axis : {0, 1}) compare([&](const Tensor& y, const Tensor&) { return log_softmax(y, axis); }, x, x, 300);
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
    const double rows = double(c.target[size_t(c.axis)]);
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

TEST_F(Sizes, GatherFromLongLines) {
  const Tensor x = uniform({400, 900});
  const Tensor index = cast(mul(rand({3000, 900}, DType::f64, Device("cpu")), 400), DType::i64);
  compare([](const Tensor& y, const Tensor& i) { return gather(y, 0, i); }, x, index);
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
