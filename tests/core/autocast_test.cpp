// The dtypes in which ops compute inside an Autocast, and the gradients of converted operands.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

Tensor f32(const Shape& shape) { return div(add(counting(shape, DType::f32), 1), 8); }

struct Row {
  const char* name;
  DType outside, inside;           // the dtypes of the result, for f32 operands
  Tensor (*run)(const Tensor& x);  // (4, 4)
};
constexpr DType kF32 = DType::f32, kBf16 = DType::bf16;
const Row kRows[] = {
    {"matmul", kF32, kBf16, [](const Tensor& x) { return matmul(x, x); }},
    {"matrix and vector", kF32, kBf16, [](const Tensor& x) { return mv(x, select(x, 0, 1)); }},
    {"linear", kF32, kBf16, [](const Tensor& x) { return linear(x, x, select(x, 0, 0)); }},
    {"addmm", kF32, kBf16, [](const Tensor& x) { return addmm(select(x, 0, 0), x, x); }},
    {"einsum", kF32, kBf16, [](const Tensor& x) { return einsum("ij,jk->ik", {x, x}); }},
    {"conv2d", kF32, kBf16, [](const Tensor& x) { return conv2d(reshape(x, {1, 1, 4, 4}), reshape(x, {4, 1, 2, 2})); }},
    {"conv_transpose1d", kF32, kBf16,
     [](const Tensor& x) { return conv_transpose1d(reshape(x, {1, 4, 4}), reshape(x, {4, 2, 2})); }},
    {"attention", kF32, kBf16, [](const Tensor& x) { return scaled_dot_product_attention(x, x, x, x); }},
    {"a product in f64", DType::f64, DType::f64,
     [](const Tensor& x) { return matmul(cast(x, DType::f64), cast(x, DType::f64)); }},
    {"softmax of a half", kBf16, kF32, [](const Tensor& x) { return softmax(cast(x, DType::bf16), 0); }},
    {"sum of a half", kBf16, kF32, [](const Tensor& x) { return sum(cast(x, DType::bf16)); }},
    {"layer_norm of a half", kBf16, kF32, [](const Tensor& x) { return layer_norm(cast(x, DType::bf16), {4}); }},
    {"pow of a half", kBf16, kF32, [](const Tensor& x) { return pow(cast(x, DType::bf16), 3); }},
    {"exp of a half", kBf16, kF32, [](const Tensor& x) { return exp(cast(x, DType::bf16)); }},
    {"mse_loss of a half", kBf16, kF32,
     [](const Tensor& x) { return mse_loss(cast(x, DType::bf16), cast(x, DType::bf16)); }},
    {"cross_entropy of a half", kBf16, kF32,
     [](const Tensor& x) { return cross_entropy(cast(x, DType::bf16), zeros({4}, DType::i64)); }},
    {"cross_entropy of a half and probabilities", kBf16, kF32,
     [](const Tensor& x) { return cross_entropy(cast(x, DType::bf16), x); }},
    {"relu of a half", kBf16, kBf16, [](const Tensor& x) { return relu(cast(x, DType::bf16)); }},
    {"add", kF32, kF32, [](const Tensor& x) { return add(x, x); }},
    {"sum of integers", DType::i64, DType::i64, [](const Tensor& x) { return sum(cast(x, DType::i64)); }},
};

TEST(Autocast, ChoosesTheDtypeByTheOp) {
  const Tensor x = f32({4, 4});
  for (const Row& each : kRows) {
    EXPECT_EQ(each.run(x).dtype(), each.outside) << each.name;
    const Autocast mixed(DType::bf16);
    EXPECT_EQ(each.run(x).dtype(), each.inside) << each.name;
  }
}

TEST(Autocast, ComputesWhatConvertedOperandsGive) {
  const Tensor x = div(f32({4, 4}), 3), halves = cast(x, DType::f16);
  const Autocast mixed(DType::f16);
  EXPECT_EQ(matmul(x, x).dtype(), DType::f16);
  const std::vector<double> inside = elements(matmul(x, transpose(x)));
  const Autocast off({.enabled = false});
  EXPECT_EQ(inside, elements(matmul(halves, transpose(halves))));
  EXPECT_EQ(matmul(x, x).dtype(), DType::f32);
}

// A loss of halves is computed in f32 without logits in f32.
TEST(Autocast, CrossEntropyKeepsItsLogits) {
  const Tensor logits = cast(div(f32({3, 40}), 7), DType::bf16), targets = of(DType::i64, {1, 39, 0}, {3});
  const Tensor wide = cast(logits, DType::f32).requires_grad_(), halves = logits.detach().requires_grad_();
  const Tensor expected = cross_entropy(wide, targets);
  const Autocast mixed(DType::bf16);
  const Tensor loss = cross_entropy(halves, targets);
  EXPECT_EQ(loss.dtype(), DType::f32);
  EXPECT_TRUE(close(loss, {}, elements(expected), 1e-6));
  const Tensor slopes = grad({loss}, {halves})[0];
  EXPECT_EQ(slopes.dtype(), DType::bf16);
  EXPECT_TRUE(close(slopes, {3, 40}, elements(cast(grad({expected}, {wide})[0], DType::bf16)), 1e-5));
}

TEST(Autocast, GivesGradientsTheirParametersDtype) {
  const Tensor x = f32({3, 4});
  Tensor weight = f32({2, 4}).requires_grad_(), loss;
  {
    const Autocast mixed(DType::bf16);
    const Tensor y = linear(x, weight);
    EXPECT_EQ(y.dtype(), DType::bf16);
    loss = mse_loss(y, zeros({3, 2}));  // operands of two dtypes: computes in f32
    EXPECT_EQ(loss.dtype(), DType::f32);
  }
  loss.backward();
  EXPECT_EQ(weight.grad().dtype(), DType::f32);
  Tensor exact = weight.detach();
  exact = clone(exact).requires_grad_();
  mse_loss(linear(x, exact), zeros({3, 2})).backward();
  EXPECT_TRUE(close(weight.grad(), {2, 4}, elements(exact.grad()), 0.02));
}

TEST(Autocast, ConvertsAParameterOnceForEachPass) {
  const Tensor x = cast(f32({4, 4}), DType::bf16);
  Tensor weight = f32({4, 4}).requires_grad_();
  const auto kernels = [&](auto&& f) {
    const uint64_t before = x.device().counters().kernels;
    f();
    return x.device().counters().kernels - before;
  };
  const Autocast mixed(DType::bf16);
  Tensor once, twice;
  const uint64_t first = kernels([&] { once = matmul(x, weight); });
  EXPECT_LT(kernels([&] { twice = matmul(x, weight); }), first);
  sum(add(once, twice)).backward();
  EXPECT_EQ(kernels([&] { sum(matmul(x, weight)).backward(); }), kernels([&] { sum(matmul(x, weight)).backward(); }));
  {
    const NoGrad unrecorded;
    weight.mul_(2);
  }
  const NoGrad unrecorded;
  EXPECT_TRUE(close(matmul(x, weight), {4, 4}, elements(mul(once, 2)), 0.01));
}

TEST(Autocast, HoldsInTheSecondRunOfACheckpoint) {
  const Tensor x = f32({4, 4});
  Tensor weight = f32({4, 4}).requires_grad_(), plain = clone(weight.detach()).requires_grad_();
  const auto run = [&](const Tensor& by) {
    const auto f = [&by](const Tensor& in) { return exp(div(matmul(in, by), 8)); };
    return &by == &weight ? checkpoint(f, x) : f(x);
  };
  Tensor checked, recorded;
  {
    const Autocast mixed(DType::bf16);
    checked = sum(run(weight));
    recorded = sum(run(plain));
  }
  checked.backward();
  recorded.backward();
  EXPECT_EQ(elements(weight.grad()), elements(plain.grad()));
}

TEST(Autocast, KeepsToOneBackend) {
  const Tensor x = f32({2, 2});
  {
    const Autocast elsewhere({.device = "none"});
    EXPECT_EQ(matmul(x, x).dtype(), DType::f32);
    EXPECT_EQ(cross_entropy(cast(x, DType::bf16), zeros({2}, DType::i64)).dtype(), DType::bf16);
    const std::string name = x.device().name();
    const Autocast here({.device = name.substr(0, name.find(':'))});
    EXPECT_EQ(matmul(x, x).dtype(), DType::bf16);
  }
  EXPECT_FALSE(autocast_enabled());
}

TEST(Autocast, RefusesOtherDtypes) {
  const std::vector<std::string> parts = {"[autocast] the dtype is f64", "bf16 or f16"};
  EXPECT_TRUE(throws(Code::invalid, parts, [] { const Autocast wide(DType::f64); }));
  EXPECT_FALSE(autocast_enabled());
}

}  // namespace
}  // namespace plugrad::test
