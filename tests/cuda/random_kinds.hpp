// What the tables of steps share: how a step is drawn from the values so far.
#pragma once
#include <tests/cuda/random_program.hpp>

#include <optional>
#include <span>

namespace plugrad::test {

using Random = std::mt19937_64;
using Numbers = std::vector<int64_t>;
using Steps = std::vector<Step>;

// draw makes a step from the values so far, or nothing if it finds no operands; run computes the step.
struct StepKind {
  const char* name;
  std::optional<Step> (*draw)(const Steps& steps, Random& random);
  Tensor (*run)(const Step& step, const Tensor& a, const Tensor& b);
};
// Activations, norms, pooling, convolution, whole numbers, bits, indices and so on.
std::span<const StepKind> wide_kinds();

int64_t below(Random& random, int64_t n);
int pick(const Steps& steps, Random& random);
// Picks a value whose rank is at least this; -1 if there is none.
int pick_of_rank(const Steps& steps, Random& random, size_t rank);
const Shape& shape_at(const Steps& steps, int i);
Shape draw_shape(Random& random);
// A step with a result of this shape, or nothing if it is too large.
std::optional<Step> made(int a, Shape shape, Numbers numbers = {}, int b = -1);

// A result of the operand's shape.
std::optional<Step> draw_same(const Steps& steps, Random& random);
// Two operands that broadcast.
std::optional<Step> draw_pair(const Steps& steps, Random& random);
// numbers: keepdim, then the axes.
std::optional<Step> draw_reduction(const Steps& steps, Random& random);
Shape axes_of(const Step& step);
// The operand's shape; numbers: an axis.
std::optional<Step> draw_axis(const Steps& steps, Random& random);
// (.., m, n) gives (.., m, m).
std::optional<Step> draw_matmul(const Steps& steps, Random& random);

}  // namespace plugrad::test
