// Operands that are larger than the caches, for which a device may have other kernels.
#include <tests/core/expect.hpp>

#include <cmath>
#include <functional>

namespace plugrad::test {
namespace {
constexpr int64_t kCount = (int64_t{17} << 20) / 4 + 5;  // 17 MiB of f32 and a few elements; twice as many bytes of f64

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
      {"in place",
       [](T a, T b) {
         Tensor to = clone(a);
         to.add_(b);
         return to;
       }},
      {"shifted",
       [](T a, T b) {
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

// Each pass begins at the end at which the previous pass ended. A further pass between two calls reverses all passes of the
// second call.
class Turned : public Large {
 protected:
  const Tensor a = rand({1031, 1032}, DType::f32, default_device(), -2, 2), row = rand({1032});

  // Overwrites free memory, so that the next results do not find the old results there.
  static void soil_memory(const std::vector<Tensor>& results) {
    std::vector<Tensor> soiled;
    for (const Tensor& each : results) soiled.push_back(full(each.shape(), NAN, each.dtype(), each.device()));
  }
  void expect_equal_bits(const std::function<std::vector<Tensor>()>& passes, const std::vector<Tensor>& expected) const {
    for (int call = 0; call < 6; ++call) {
      if (call % 2) (void)(a + 1);
      soil_memory(expected);
      const std::vector<Tensor> found = passes();
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(elements(found[i]), elements(expected[i]))) << i;
    }
  }
};

TEST_F(Turned, OpsGiveEqualBits) {
  const std::vector<std::function<std::vector<Tensor>()>> all = {
      [&] { return std::vector{a * 2 + row, clone(transpose(a, 0, 1)) * a.size(0)}; },
      [&] { return std::vector{sum(a), sum(a, {0}), sum(a, {1}), amax(a), amax(a, {0})}; },
      [&] { return std::vector{softmax(a, 1), log_softmax(a, 1), gelu(a)}; },
      [&] {
        const Tensor images = reshape(a, {1031, 3, 344});
        return std::vector{batch_norm(images, {}, {}, ones({3}), {}, true), sum(images, {0, 2})};
      },
  };
  for (const auto& passes : all) expect_equal_bits(passes, passes());
}

TEST_F(Turned, GradientsOfNormsHaveEqualBits) {
  const Tensor x = rand({1031, 1032}).requires_grad_(), weight = rand({1032}).requires_grad_();
  const std::vector<std::function<Tensor()>> all = {
      [&] { return layer_norm(x, {1032}, weight, row); },
      [&] { return rms_norm(x, {1032}, weight); },
      [&] { return batch_norm(x, {}, {}, weight, row, true); },
  };
  for (const auto& norm : all) {
    const auto passes = [&] {
      const Tensor y = norm();
      const std::vector<Tensor> slopes = grad({y}, {x, weight}, {.seeds = {a}});
      return std::vector{y, slopes[0], slopes[1]};
    };
    expect_equal_bits(passes, passes());
  }
}

TEST_F(Turned, FusionsGiveEagersBits) {
  const auto function = [](const Tensor& x, const Tensor& bias) {
    const Tensor y = relu(x + bias);
    return std::vector{sum(y * x), sum(y, {0}), softmax(y, 1)};
  };
  auto step = compile(function);
  for (const double factor : {1, 2, 3}) {
    const Tensor x = a * factor;
    expect_equal_bits([&] { return step(x, row); }, function(x, row));
  }
}

TEST_F(Turned, ErrorsNameTheFirstRow) {
  std::vector<int64_t> targets(1031, 0);
  targets[5] = targets[1000] = 1032;
  const Tensor labels = i64(targets, {1031});
  for (int call = 0; call < 4; ++call) {
    if (call % 2) (void)(a + 1);
    EXPECT_TRUE(throws(Code::index_error, {"row 5"}, [&] { cross_entropy(a, labels); }));
  }
}

}  // namespace
}  // namespace plugrad::test
