#include <tests/steps/twins.hpp>

namespace plugrad::test {

std::vector<std::byte> bytes(const Tensor& x) {
  std::vector<std::byte> all(static_cast<size_t>(x.count() * item_size(x.dtype())));
  x.copy_to_host(all.data());
  return all;
}

::testing::AssertionResult same_bytes(const Tensors& actual, const Tensors& expected) {
  const auto failure = [] { return ::testing::AssertionFailure(); };
  if (actual.size() != expected.size()) return failure() << actual.size() << " tensors, not " << expected.size();
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor &a = actual[i], &b = expected[i];
    if (a.defined() != b.defined()) return failure() << "tensor " << i << " is defined in one only";
    if (!a.defined()) continue;
    if (a.shape() != b.shape() || a.dtype() != b.dtype())
      return failure() << "tensor " << i << ": " << a.shape().text() << " " << dtype_name(a.dtype()) << ", not "
                       << b.shape().text() << " " << dtype_name(b.dtype());
    if (bytes(a) != bytes(b)) return failure() << "tensor " << i << " is " << a << ", not " << b;
  }
  return ::testing::AssertionSuccess();
}

Tensor f32(const std::vector<double>& values) { return of(DType::f32, values, {static_cast<int64_t>(values.size())}); }
Tensor one(int value) { return f32({1.0 * value}); }
Tensor labels(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(i % 3);
  return i64(all);
}

Net::Net(uint64_t seed) {
  manual_seed(seed);
  for (const Shape& shape : {Shape{2, 16}, Shape{16}, Shape{16, 3}, Shape{3}})
    parameters.push_back(rand(shape, DType::f32, default_device(), -0.5, 0.5).requires_grad_());
}

Tensor Net::operator()(const Tensor& x) const {
  return matmul(tanh(matmul(x, parameters[0]) + parameters[1]), parameters[2]) + parameters[3];
}

Tensor points(int64_t n, uint64_t seed) {
  manual_seed(seed);
  return rand({n, 2}, DType::f32, default_device(), -1, 1);
}

}  // namespace plugrad::test
