// Batcher, "Sorting networks and their applications", 1968. Every comparison is between two halves of a block, so a step is
// a few elementwise ops on views.
#include <core/ops/bitonic.hpp>

#include <core/ops/infinity.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/views.hpp>

#include <bit>
#include <limits>

namespace plugrad {
namespace {
// Both have shape (lines, n), where n is a power of two. Pairs are ordered by key, then by place; no two places of a line
// are equal, so the order is total, and the network's result is that of a stable sort.
struct Pairs {
  Tensor key, place;
};

// The dtype for comparing elements; it holds them exactly.
DType key_dtype(DType dtype) {
  if (dtype == DType::i32 || dtype == DType::i64) return DType::i64;
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

// Places go up to 3 n, where f32 is exact.
DType place_dtype(int64_t n) { return n <= int64_t{1} << 22 ? DType::f32 : DType::i64; }

// 0 .. length - 1, by doubling: IOTA needs a device with numbers as operands.
Tensor places_up_to(int64_t length, DType dtype, Device device) {
  Tensor places = zeros({1}, dtype, device);
  while (places.count() < length) places = cat({places, add(places, places.count())});
  return slice(places, 0, 0, length);
}

// A NaN becomes an infinity with a place beyond the places of numbers.
Pairs without_nan(const Pairs& pairs, int64_t n, bool descending) {
  const Tensor nan = isnan(pairs.key);
  return {where(nan, descending ? -kInfinity : kInfinity, pairs.key),
          where(nan, add(pairs.place, descending ? -n : n), pairs.place)};
}

// The pairs of x (lines, length), filled up to n along each line by pairs last in the order.
Pairs pairs_of(const Tensor& x, int64_t n, bool descending) {
  const int64_t length = x.size(1);
  Tensor key = cast(x, key_dtype(x.dtype()));
  const bool floating = is_floating(key.dtype());
  if (descending) key = floating ? neg(key) : sub(-1, key);
  const Tensor place = expand(places_up_to(length, place_dtype(n), x.device()), x.shape());
  const Pairs pairs = floating ? without_nan({key, place}, n, descending) : Pairs{key, place};
  const std::vector<int64_t> added = {0, n - length};
  const Number last = floating ? Number(kInfinity) : Number(std::numeric_limits<int64_t>::max());
  return {pad(pairs.key, added, last), pad(pairs.place, added, 2 * n)};
}

// Exchanges elements of a and b so that a's come first: by keys, and by places where keys are equal.
void exchange(Pairs& a, Pairs& b) {
  const Tensor tie = eq(a.key, b.key), later = lt(b.key, a.key);
  const Tensor first = where(tie, minimum(a.place, b.place), where(later, b.place, a.place));
  b.place = where(tie, maximum(a.place, b.place), where(later, a.place, b.place));
  a.place = first;
  const Tensor smaller = minimum(a.key, b.key);
  b.key = maximum(a.key, b.key);
  a.key = smaller;
}

Tensor half(const Tensor& blocks, bool second, bool mirrored) {
  const int64_t size = blocks.size(2) / 2;
  const Tensor part = slice(blocks, 2, second ? size : 0, second ? 2 * size : size);
  return second && mirrored ? flip(part, {2}) : part;
}
Tensor joined(const Tensor& first, const Tensor& second, bool mirrored, const Shape& shape) {
  return reshape(cat({first, mirrored ? flip(second, {2}) : second}, 2), shape);
}

// Compares each element of a block's first half with the element of the second half at the same place, or at the mirrored
// place, and exchanges them if they are out of order.
Pairs step(const Pairs& pairs, int64_t block, bool mirrored) {
  const Shape shape = pairs.key.shape(), blocks = {shape[0], shape[1] / block, block};
  const Tensor keys = reshape(pairs.key, blocks), places = reshape(pairs.place, blocks);
  Pairs a{half(keys, false, mirrored), half(places, false, mirrored)};
  Pairs b{half(keys, true, mirrored), half(places, true, mirrored)};
  exchange(a, b);
  return {joined(a.key, b.key, mirrored, shape), joined(a.place, b.place, mirrored, shape)};
}

// The places of (lines, n) in order.
Tensor sorted_places(Pairs pairs) {
  const int64_t n = pairs.key.size(1);
  for (int64_t block = 2; block <= n; block *= 2) {
    pairs = step(pairs, block, true);
    for (int64_t smaller = block / 2; smaller > 1; smaller /= 2) pairs = step(pairs, smaller, false);
  }
  return pairs.place;
}
}  // namespace

Tensor bitonic_argsort(const Tensor& x, int axis, bool descending) {
  const Tensor lines = movedim(x, {axis}, {-1});
  const int64_t length = x.size(axis), n = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
  const Tensor flat = reshape(lines, {x.count() / length, length});
  Tensor place = slice(sorted_places(pairs_of(flat, n, descending)), 1, 0, length);
  if (is_floating(x.dtype()))
    place = descending ? where(lt(place, 0), add(place, n), place) : where(ge(place, n), sub(place, n), place);
  return contiguous(movedim(reshape(cast(place, DType::i64), lines.shape()), {-1}, {axis}));
}

}  // namespace plugrad
