#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/activations.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/random.hpp>

namespace plugrad::io::onnx {
namespace {

// Random numbers come from plugrad's generator: a node's seed is not used.
template <bool kNormal> Value random_numbers(const Call& c, const Shape& shape, ElementType type) {
  if (kNormal) return c.as(randn(shape, DType::f32, c.device(), c.real("mean", 0), c.real("scale", 1)), type);
  return c.as(rand(shape, DType::f32, c.device(), c.real("low", 0), c.real("high", 1)), type);
}

template <bool kNormal> Value random_of_shape(Call& c) {
  return random_numbers<kNormal>(c, Shape(c.integers("shape")), static_cast<ElementType>(c.integer("dtype", 1)));
}

template <bool kNormal> Value random_like(Call& c) {
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(c.type(0))));
  return random_numbers<kNormal>(c, c.shape(0), type);
}

Value bernoulli_draws(Call& c) {
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(c.type(0))));
  return c.as(cast(lt(rand(c.shape(0), DType::f32, c.device()), cast(c.tensor(0), DType::f32)), carrier_of(type)), type);
}

Value multinomial_draws(Call& c) {
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(ElementType::i32)));
  return c.as(multinomial(softmax(cast(c.tensor(0), DType::f32), -1), c.integer("sample_size", 1), true), type);
}

constexpr auto kRandomKind = Operator::Kind::random;
constexpr Operator kRandom[] = {
    {"RandomNormal", random_of_shape<true>, kRandomKind}, {"RandomUniform", random_of_shape<false>, kRandomKind},
    {"RandomNormalLike", random_like<true>, kRandomKind}, {"RandomUniformLike", random_like<false>, kRandomKind},
    {"Bernoulli", bernoulli_draws, kRandomKind},          {"Multinomial", multinomial_draws, kRandomKind},
};
}  // namespace

std::span<const Operator> random_operators() { return kRandom; }

}  // namespace plugrad::io::onnx
