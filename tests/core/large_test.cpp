// Operands that are larger than the caches, for which a device may have other kernels.
#include <tests/core/expect.hpp>

#include <functional>

namespace plugrad::test {
namespace {
constexpr int64_t kCount = (int64_t{17} << 20) / 4 + 5;  // of f32; also of f64, twice as large

using Function = std::function<Tensor(const Tensor&, const Tensor&)>;

const std::vector<std::pair<const char*, Function>>& functions() {
  using T = const Tensor&;
  static const std::vector<std::pair<const char*, Function>> all = {
      {"add", [](T a, T b) { return a + b; }},
      {"sub", [](T a, T b) { return a - b; }},
      {"mul", [](T a, T b) { return a * b; }},
      {"div", [](T a, T b) { return a / b; }},
      {"maximum", [](T a, T b) { return maximum(a, b); }},
      {"minimum", [](T a, T b) { return minimum(a, b); }},
      {"number on the left", [](T a, T) { return 3 - a; }},
      {"number on the right", [](T a, T) { return a * 0.7; }},
      {"relu", [](T a, T) { return relu(a); }},
      {"neg", [](T a, T) { return -a; }},
      {"abs", [](T a, T) { return abs(a); }},
      {"sign", [](T a, T) { return sign(a); }},
      {"sqrt", [](T a, T) { return sqrt(abs(a)); }},
      {"clone", [](T a, T) { return clone(a); }},
      {"full", [](T a, T) { return full(a.shape(), 0.3, a.dtype(), a.device()); }},
      {"gt", [](T a, T b) { return gt(a, b); }},
      {"in place", [](T a, T b) {
         Tensor to = clone(a);
         to.add_(b);
         return to;
       }},
      {"shifted", [](T a, T b) {
         Tensor to = zeros({a.size(0) + 1}, a.dtype(), a.device()), part = slice(to, 0, 1, a.size(0) + 1);
         part.copy_(a);
         part.add_(b);
         return clone(part);
       }},
  };
  return all;
}

void expect_parts_of(const Tensor& whole, const Function& f, const Tensor& a, const Tensor& b) {
  const int64_t rows = a.size(0);
  for (const int64_t first : {int64_t{0}, rows / 2, rows - 7}) {
    const auto part = [&](const Tensor& x) { return x.size(0) == rows ? slice(x, 0, first, first + 7) : x; };
    const Tensor expected = f(clone(part(a)), clone(part(b))), found = clone(part(whole));
    EXPECT_TRUE(same_bits(elements(found), elements(expected)));
  }
}

class Large : public ::testing::Test {
 protected:
  void SetUp() override {
    if (default_device().name().rfind("cpu", 0) != 0) GTEST_SKIP() << "no size is special";
  }
};

TEST_F(Large, ResultsAreThoseOfTheirParts) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = rand({kCount}, dtype, default_device(), -2, 2), b = rand({kCount}, dtype, default_device(), -2, 2);
    for (const auto& [name, f] : functions()) {
      SCOPED_TRACE(name);
      expect_parts_of(f(a, b), f, a, b);
    }
  }
}

TEST_F(Large, RowsMayBroadcast) {
  const Function add = [](const Tensor& a, const Tensor& b) { return a + b; };
  for (const int64_t columns : {1056, 1057}) {
    const Tensor a = rand({4200, columns});
    for (const Shape& shape : {Shape{columns}, Shape{4200, 1}}) {
      const Tensor b = rand(shape);
      expect_parts_of(add(a, b), add, a, b);
      expect_parts_of(add(b, a), add, a, b);
    }
  }
}

// A pass begins where the one before it ended, so repeated ones take their parts in different orders.
TEST_F(Large, RepeatedPassesGiveEqualBits) {
  const Tensor a = rand({1031, 1029}, DType::f32, default_device(), -2, 2), weight = rand({1029}), bias = rand({1029});
  Tensor leaf = rand({1031, 1029}).requires_grad_(), other = rand({1029}).requires_grad_();
  const auto gradients = [&](const Tensor& y) { return grad({y}, {leaf, other}, {.seeds = {a}}); };
  const std::vector<std::function<std::vector<Tensor>()>> passes = {
      [&] { return std::vector{a * 2 + bias, clone(transpose(a, 0, 1)) * a.size(0)}; },
      [&] { return std::vector{sum(a), sum(a, {0}), sum(a, {1}), amax(a), amax(a, {0})}; },
      [&] { return std::vector{softmax(a, 1), softmax(a, 0), log_softmax(a, 1)}; },
      [&] { return gradients(layer_norm(leaf, {1029}, other, bias)); },
      [&] { return gradients(rms_norm(leaf, {1029}, other)); },
      [&] { return gradients(batch_norm(leaf, {}, {}, other, bias, true)); },
      [&] {
        const Tensor images = reshape(a, {1031, 3, 343});
        return std::vector{batch_norm(images, {}, {}, rand({3}) * 0 + 1, {}, true), sum(images, {0, 2})};
      },
  };
  for (const auto& pass : passes) {
    const std::vector<Tensor> first = pass();
    for (int again = 0; again < 3; ++again) {
      const std::vector<Tensor> next = pass();
      for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(same_bits(elements(next[i]), elements(first[i])));
    }
  }
}

TEST_F(Large, RepeatedProgramsGiveEagersBits) {
  const auto function = [](const Tensor& x, const Tensor& row) {
    Tensor y = relu(x + row);
    return std::vector{sum(y * x), sum(y, {0}), softmax(y, 1)};
  };
  auto step = compile(function);
  const Tensor x = rand({1031, 1029}, DType::f32, default_device(), -2, 2), row = rand({1029});
  const std::vector<Tensor> expected = function(x, row);
  for (int call = 0; call < 6; ++call) {
    const std::vector<Tensor> found = step(x, row);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(elements(found[i]), elements(expected[i])));
  }
}

}  // namespace
}  // namespace plugrad::test
