// Fusions of compiled steps that reduce: they take one launch and give the same bits as the single kernels.
#include <plugrad/backends/cuda.hpp>
#include <plugrad/plugrad.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <vector>

namespace plugrad::test {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> bytes(static_cast<size_t>(t.count()) * item_size(t.dtype()));
  t.copy_to_host(bytes.data());
  return bytes;
}

class ReducingFusions : public ::testing::Test {
 protected:
  ReducingFusions() {
    setenv("PLUGRAD_CUDA_EMU_OPTIONS", "fusions=2", 1);
    add_backend(plugrad_cuda_backend(host()));
    set_default_device(Device("cuda-emu"));
    manual_seed(7);
  }
  // Returns how many kernels the compiled function launches. Expects the same bits as the function's own results.
  uint64_t launches(const Function& f, const Tensors& inputs) {
    const Tensors expected = f(inputs);
    auto step = compile([&](const Tensor& a, const Tensor& b) { return f({a, b}); }, {.fusion_elements = 1});
    step(inputs[0], inputs[1]);  // records the step
    Device("cuda-emu").sync();
    const uint64_t before = simt::launches();
    const Tensors results = step(inputs[0], inputs[1]);
    Device("cuda-emu").sync();
    const uint64_t launched = simt::launches() - before;
    EXPECT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(bytes_of(results[i]), bytes_of(expected[i])) << "result " << i;
    return launched;
  }
};

Tensor draw(const Shape& shape) { return rand(shape, DType::f32, default_device(), -1, 1); }

Function reduced_along(Shape axes) {
  return [axes](const Tensors& x) -> Tensors {
    const Tensor y = relu(x[0]) * x[1];
    return {sum(y, axes), y, max(x[0], axes)};
  };
}

TEST_F(ReducingFusions, AreOneLaunchForAllForms) {
  const Shape shapes[] = {{1000}, {100000}, {3, 5}, {64, 48}, {700, 129}, {5, 9000}, {9000, 8}};
  for (const Shape& shape : shapes)
    for (int axis = -1; axis < static_cast<int>(shape.size()); ++axis) {
      const Shape axes = axis < 0 ? Shape() : Shape{axis};
      EXPECT_EQ(launches(reduced_along(axes), {draw(shape), draw(shape)}), 1u) << shape[0] << " along " << axis;
    }
  EXPECT_EQ(launches(reduced_along({0, 2}), {draw({6, 40, 20}), draw({6, 40, 20})}), 1u);
  EXPECT_EQ(launches(reduced_along({1}), {draw({6, 40, 20}), draw({6, 40, 20})}), 1u);
}

TEST_F(ReducingFusions, AreForEachDType) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::i64, DType::i32})
    for (const int axis : {0, 1}) {
      const Tensor a = draw({300, 64}) * 100, b = draw({300, 64}) * 100;
      EXPECT_EQ(launches(reduced_along({axis}), {cast(a, dtype), cast(b, dtype)}), dtype == DType::i32 ? 3u : 1u)
          << dtype_name(dtype) << " along " << axis;  // sums of i32 are i64, and its extremes are not: the fusion is halved
    }
}

TEST_F(ReducingFusions, TakeRepeatedAndStridedInputs) {
  for (const int axis : {0, 1}) {
    EXPECT_EQ(launches(reduced_along({axis}), {draw({96, 64}), draw({64})}), 1u) << axis;
    EXPECT_EQ(launches(reduced_along({axis}), {draw({96, 64}), draw({96, 1})}), 1u) << axis;
    EXPECT_EQ(launches(reduced_along({axis}), {draw({96, 64}), draw({})}), 1u) << axis;
    EXPECT_EQ(launches(reduced_along({axis}), {draw({96, 64}), narrow(draw({96, 128}), 1, 64, 64)}), 1u) << axis;
  }
  EXPECT_EQ(launches(reduced_along({}), {draw({96, 64}), draw({64})}), 1u);
}

// The packs of the sum's own kernel would extend over the ends of rows, or are not aligned.
TEST_F(ReducingFusions, RunSinglyWherePacksDoNotFit) {
  EXPECT_EQ(launches(reduced_along({}), {draw({64, 33}), draw({33})}), 4u);
  EXPECT_EQ(launches(reduced_along({0}), {narrow(draw({4001}), 0, 1, 4000), draw({4000})}), 4u);
  EXPECT_EQ(launches(reduced_along({1}), {draw({96, 64}), narrow(draw({96, 130}), 1, 1, 64)}), 4u);
}

TEST_F(ReducingFusions, RunForwardAndBackward) {
  const Function f = [](const Tensors& inputs) -> Tensors {
    const Tensor x = inputs[0].detach().requires_grad_();
    const Tensor loss = sum(relu(x) * x);
    loss.backward();
    return {loss.detach(), x.grad()};
  };
  EXPECT_EQ(launches(f, {draw({30000}), draw({})}), 1u);
  const Function layer = [](const Tensors& inputs) -> Tensors {
    const Tensor bias = inputs[1].detach().requires_grad_();
    const Tensor y = relu(inputs[0] + bias);
    sum(y * inputs[0]).backward();
    return {y.detach(), bias.grad()};
  };
  EXPECT_EQ(launches(layer, {draw({500, 64}), draw({64})}), 1u);
}

Tensors softmax_by_hand(const Tensors& x) {
  const Tensor e = exp(x[0] - max(x[0], {-1}, true));
  return {e / sum(e, {-1}, true)};
}

Tensors normal_by_hand(const Tensors& x) {
  const Tensor centre = mean(x[0], {-1}, true), centred = x[0] - centre;
  const Tensor deviation = sqrt(mean(centred * centred, {-1}, true) + 1e-5);
  return {centred / deviation * x[1], centre, deviation};
}

TEST_F(ReducingFusions, GoOnAfterRows) {
  for (const Shape& shape : {Shape{130, 64}, Shape{300, 20}, Shape{40, 1000}, Shape{7, 9, 33}}) {
    EXPECT_EQ(launches(softmax_by_hand, {draw(shape), draw({})}), 1u) << shape[0];
    EXPECT_EQ(launches(normal_by_hand, {draw(shape), draw({shape.back()})}), 1u) << shape[0];
  }
  const Tensor bf16 = cast(draw({60, 128}), DType::bf16);
  EXPECT_EQ(launches(softmax_by_hand, {bf16, draw({})}), 1u);
}

// The sums' own kernels cut such rows into segments. Ops over still longer rows are not fused.
TEST_F(ReducingFusions, GoOnAfterRowsThatAreCut) {
  for (const int64_t columns : {2500, 4095}) {
    EXPECT_EQ(launches(softmax_by_hand, {draw({2, columns}), draw({})}), 1u) << columns;
    EXPECT_EQ(launches(normal_by_hand, {draw({3, columns}), draw({columns})}), 1u) << columns;
  }
  EXPECT_EQ(launches(softmax_by_hand, {cast(draw({2, 4096}), DType::f64), draw({})}), 1u);
  EXPECT_EQ(launches(softmax_by_hand, {draw({2, 60000}), draw({})}), 3u);
}

// The order of comparisons decides whether 0 or -0 is the largest, and all threads of a row must agree.
TEST_F(ReducingFusions, AgreeAboutTheSignOfZero) {
  const auto largest = [](const Tensors& x) -> Tensors {
    const Tensor most = max(x[0], {-1}, true), least = min(x[0], {-1}, true);
    return {x[1] / most, x[1] / least, most, least};
  };
  for (const int64_t members : {2, 4, 8, 32})
    for (uint32_t signs = 0; signs < 16; ++signs) {
      const Shape shape{3, 16 * members};
      std::vector<float> zeros;
      for (int64_t i = 0; i < shape[0] * shape[1]; ++i) zeros.push_back(signs >> (i / 4 + i / 16) % 4 & 1 ? -0.0f : 0.0f);
      EXPECT_EQ(launches(largest, {Tensor::from(zeros, shape, default_device()), ones(shape)}), 1u) << members;
    }
}

// An argument may be at another address in each call. An argument at an unaligned address is copied; then the fusion runs.
TEST_F(ReducingFusions, RunAsOneWhereverTheirArgumentsLie) {
  const Function f = reduced_along({});
  auto step = compile([&](const Tensor& a, const Tensor& b) { return f({a, b}); }, {.fusion_elements = 1});
  const Tensor buffer = draw({40001}), other = draw({40000});
  for (int i = 0; i < 5; ++i) {
    const Tensor x = narrow(buffer, 0, i % 2, 40000);
    const Tensors expected = f({x, other});
    Device("cuda-emu").sync();
    const uint64_t before = simt::launches();
    const Tensors results = step(x, other);
    Device("cuda-emu").sync();
    if (i) {
      EXPECT_EQ(simt::launches() - before, i % 2 ? 2u : 1u) << i;
    }
    for (size_t k = 0; k < results.size(); ++k) EXPECT_EQ(bytes_of(results[k]), bytes_of(expected[k])) << i;
  }
}

}  // namespace
}  // namespace plugrad::test
