// What the tables of steps share: how a step is drawn from the values so far.
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
// Of those, the ones that sort, select, and write to places.
std::span<const StepKind> place_kinds();

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
// The operand's shape; numbers: a seed.
std::optional<Step> draw_seeded(const Steps& steps, Random& random);
// The same, of at least one axis.
std::optional<Step> draw_line(const Steps& steps, Random& random);
// The same, of at least two axes, the last but one of 12 elements at most.
std::optional<Step> draw_plane(const Steps& steps, Random& random);

// --- Operands of a step, drawn from its seed, on the device of `like`.

// Whole numbers from -8 to 8, i64.
Tensor whole(S step, const Shape& shape, T like);
inline Tensor whole(S step, T like) { return whole(step, like.shape(), like); }
// The same divided by 8, in like's dtype.
Tensor eighths(S step, const Shape& shape, T like);
inline Tensor eighths(S step, T like) { return eighths(step, like.shape(), like); }
Tensor mask(S step, T like);
// Elements whose order is known: the distance of two is far larger than rounding.
Tensor ordered(S step, T x);
// x as a factor that is a whole number, or a few eighths.
Tensor times(T x, T number);

}  // namespace plugrad::test
