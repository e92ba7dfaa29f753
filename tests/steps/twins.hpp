// Programs that run twice from the same state: by eager ops and by a compiled step.
#pragma once
#include <tests/core/expect.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plugrad::test {

using Tensors = std::vector<Tensor>;

// The bytes of a tensor's elements.
std::vector<std::byte> bytes(const Tensor& x);
// Succeeds if both lists have the same tensors, bit by bit; a NaN equals only a NaN with the same bits.
::testing::AssertionResult same_bytes(const Tensors& actual, const Tensors& expected);

// Tensors of f32: with these values, and with one element.
Tensor f32(const std::vector<double>& values);
Tensor one(int value);
// 0, 1, 2, 0, 1, ...
Tensor labels(int64_t n);

// Collects the lines of the log during its lifetime.
struct Warnings {
  Warnings() {
    set_log_sink([this](LogLevel, std::string_view text) { lines.emplace_back(text); });
  }
  ~Warnings() { set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> lines;
};

// f, or f compiled, by default with fusions of any size.
template <class F> class Twin {
 public:
  Twin(bool compiled, F f, CompileOptions options = {.fusion_elements = 1})
      : compiled_(compiled), f_(f), step_(f, std::move(options)) {}
  template <class... Arguments> auto operator()(const Arguments&... arguments) {
    return compiled_ ? step_(arguments...) : f_(arguments...);
  }
  const Compiled<F>& step() const { return step_; }

 private:
  bool compiled_;
  F f_;
  Compiled<F> step_;
};

// A small classifier of points, and points.
struct Net {
  explicit Net(uint64_t seed);
  Tensor operator()(const Tensor& x) const;
  Tensors parameters;
};
Tensor points(int64_t n, uint64_t seed);

// A step of training on points and their labels.
inline auto training_step(const Net& net, nn::Optimizer& optimizer) {
  return [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    cross_entropy(net(x), y).backward();
    optimizer.step();
  };
}

}  // namespace plugrad::test
