// Long chains of recorded ops: no function recurses along a chain. PLUGRAD_CHAIN sets the length.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/value.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>

#include <gtest/gtest.h>
#include <pthread.h>
#include <cstdlib>
#include <functional>
#include <string>

namespace plugrad {
namespace {

int64_t chain_length() {
  const char* text = std::getenv("PLUGRAD_CHAIN");
  if (text) return std::atoll(text);
  return default_device().name().starts_with("sim") ? 100000 : 1000000;
}

void* call(void* body) {
  (*static_cast<std::function<void()>*>(body))();
  return nullptr;
}

// Runs body on a thread whose stack overflows after a few thousand frames.
void on_a_small_stack(std::function<void()> body) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kStack = 1 << 20;
#else
  constexpr size_t kStack = 256 << 10;
#endif
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Chain, OfTensorsIsBuiltPropagatedAndFreed) {
  on_a_small_stack([] {
    const int64_t length = chain_length();
    Tensor x = full({}, 1, DType::f64).requires_grad_();
    const Tensor one = full({}, 1, DType::f64);
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = add(y, one);
    EXPECT_EQ(y.item<double>(), static_cast<double>(length) + 1);
    y.backward();
    EXPECT_EQ(x.grad().item<double>(), 1);
  });
}

TEST(Chain, WithSavedValuesThatNobodyPropagatesIsFreed) {
  on_a_small_stack([] {
    const int64_t length = chain_length() / 10;
    Tensor x = full({}, 1, DType::f64).requires_grad_();
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = mul(y, x);
    EXPECT_EQ(y.item<double>(), 1);
  });
}

TEST(Chain, OfViewsAndManyOperandsIsFreed) {
  on_a_small_stack([] {
    const int64_t length = chain_length() / 50;
    Tensor x = full({2}, 1, DType::f64).requires_grad_();
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = slice(cat({reshape(y, {2}), x}, 0), 0, 0, 2);
    y.backward(full({2}, 1, DType::f64));
    EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 1}));
  });
}

TEST(Chain, OfGradientsThatHaveGraphsIsFreed) {
  on_a_small_stack([] {
    const int64_t length = chain_length() / 50;
    Tensor x = full({}, 1, DType::f64).requires_grad_();
    Tensor y = x;
    for (int64_t i = 0; i < length; ++i) y = mul(y, x);
    const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
    EXPECT_EQ(first.item<double>(), static_cast<double>(length) + 1);
    const Tensor second = grad({first}, {x})[0];
    EXPECT_EQ(second.item<double>(), static_cast<double>(length) * (static_cast<double>(length) + 1));
  });
}

TEST(Chain, OfValuesIsBuiltPropagatedAndFreed) {
  on_a_small_stack([] {
    const int64_t length = chain_length() / 10;
    const Value x = 1.0, step = 1.0;
    Value y = x;
    for (int64_t i = 0; i < length; ++i) y = y + step;
    y.backward();
    EXPECT_EQ(x.grad(), 1);
    EXPECT_EQ(step.grad(), static_cast<double>(length));
    y.backward();
    EXPECT_EQ(step.grad(), 2 * static_cast<double>(length));
  });
}

}  // namespace
}  // namespace plugrad
