// Functions of two tensors that run as compiled steps with fusions of any size, beside the same functions op by op.
#pragma once
#include <tests/steps/twins.hpp>

#include <functional>
#include <string>

namespace plugrad::test {

inline Tensor copy_of(const Tensor& x) { return (x * 1).detach(); }

using Function = std::function<Tensors(const Tensors&)>;

// The results of three runs of f and the arguments afterwards, by eager ops or as a compiled step.
inline Tensors after_runs(bool compiled, const Function& f, const std::function<Tensors()>& make) {
  manual_seed(5);
  const Tensors x = make();
  auto step = compile([&](const Tensor& a, const Tensor& b) { return f({a, b}); }, {.fusion_elements = 1});
  Tensors all;
  for (int i = 0; i < 3; ++i) {
    const Tensors made = compiled ? step(x[0], x[1]) : f(x);
    for (const Tensor& each : made) all.push_back(copy_of(each));
  }
  all.insert(all.end(), x.begin(), x.end());
  return all;
}

inline void expect_equal(const Function& f, const std::function<Tensors()>& make) {
  EXPECT_TRUE(same_bytes(after_runs(true, f, make), after_runs(false, f, make)));
}

inline Tensors two(const Shape& a, const Shape& b) {
  return {rand(a, DType::f32, default_device(), -2, 2), rand(b, DType::f32, default_device(), -2, 2)};
}

inline std::string explained(const Function& f, const Tensors& x) {
  auto step = compile([&](const Tensor& a, const Tensor& b) { return f({a, b}); }, {.fusion_elements = 1});
  step(x[0], x[1]);
  return step.explain();
}

}  // namespace plugrad::test
