// Functions that all tables of steps use: they draw a step from the values that exist so far.
#pragma once
#include <tests/cuda/random_program.hpp>

#include <optional>
#include <span>

namespace plugrad::test {

using Random = std::mt19937_64;
using Numbers = std::vector<int64_t>;
using Steps = std::vector<Step>;
using S = const Step&;
using T = const Tensor&;

// draw makes a step from the values so far, or nothing if it finds no operands; run computes the step.
struct StepKind {
  const char* name;
  std::optional<Step> (*draw)(const Steps& steps, Random& random);
  Tensor (*run)(const Step& step, const Tensor& a, const Tensor& b);
};
// Activations, norms, pooling, convolution, whole numbers, bits, indices and so on.
std::span<const StepKind> wide_kinds();
// The part of wide_kinds() that sorts, selects, and writes to places.
std::span<const StepKind> place_kinds();

int64_t below(Random& random, int64_t n);
int pick(const Steps& steps, Random& random);
// Picks a value whose rank is at least `rank`; returns -1 if there is no such value.
int pick_of_rank(const Steps& steps, Random& random, size_t rank);
const Shape& shape_at(const Steps& steps, int i);
Shape draw_shape(Random& random);
// A step with a result of this shape, or nothing if it is too large.
std::optional<Step> made(int a, Shape shape, Numbers numbers = {}, int b = -1);

// A result of the operand's shape.
std::optional<Step> draw_same(const Steps& steps, Random& random);
// Two operands that broadcast.
std::optional<Step> draw_pair(const Steps& steps, Random& random);
// The numbers of the step: keepdim, then the axes.
std::optional<Step> draw_reduction(const Steps& steps, Random& random);
Shape axes_of(const Step& step);
// A result of the operand's shape; numbers: an axis.
std::optional<Step> draw_axis(const Steps& steps, Random& random);
// (.., m, n) gives (.., m, m).
std::optional<Step> draw_matmul(const Steps& steps, Random& random);
// A result of the operand's shape; numbers: a seed.
std::optional<Step> draw_seeded(const Steps& steps, Random& random);
// The same for an operand of at least one axis.
std::optional<Step> draw_line(const Steps& steps, Random& random);
// The same for an operand of at least two axes, whose last axis but one has at most 12 elements.
std::optional<Step> draw_plane(const Steps& steps, Random& random);

// --- Operands of a step, drawn from its seed, on the device of `like`.

// Integers from -8 to 8, i64.
Tensor whole(S step, const Shape& shape, T like);
inline Tensor whole(S step, T like) { return whole(step, like.shape(), like); }
// The same integers divided by 8, in the dtype of `like`.
Tensor eighths(S step, const Shape& shape, T like);
inline Tensor eighths(S step, T like) { return eighths(step, like.shape(), like); }
Tensor mask(S step, T like);
// Elements whose order is the same on all devices: any two elements differ by far more than rounding.
Tensor ordered(S step, T x);
// x times a number that is an integer or a few eighths.
Tensor times(T x, T number);

}  // namespace plugrad::test
