#include <tests/cuda/random_kinds.hpp>

#include <plugrad/plugrad.hpp>

#include <algorithm>

namespace plugrad::test {

static constexpr int64_t kMost = 600;  // the most elements of a value

int64_t below(Random& random, int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); }
int pick(const std::vector<Step>& steps, Random& random) {
  return static_cast<int>(below(random, static_cast<int64_t>(steps.size())));
}
Shape draw_shape(Random& random) {
  Shape shape;
  for (int64_t rank = below(random, 4); rank > 0; --rank) shape.push_back(1 + below(random, 5));
  return shape;
}
std::optional<Step> made(int a, Shape shape, Numbers numbers, int b) {
  if (shape.size() > 5 || shape.count() > kMost) return {};
  return Step{nullptr, a, b, std::move(shape), std::move(numbers)};
}
int pick_of_rank(const std::vector<Step>& steps, Random& random, size_t rank) {
  const int start = pick(steps, random), n = static_cast<int>(steps.size());
  for (int i = 0; i < n; ++i)
    if (steps[static_cast<size_t>((start + i) % n)].shape.size() >= rank) return (start + i) % n;
  return -1;
}
const Shape& shape_at(const std::vector<Step>& steps, int i) { return steps[static_cast<size_t>(i)].shape; }

std::optional<Step> draw_same(const std::vector<Step>& steps, Random& random) {
  const int a = pick(steps, random);
  return made(a, shape_at(steps, a));
}

static bool broadcasts(const Shape& a, const Shape& b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}
std::optional<Step> draw_pair(const std::vector<Step>& steps, Random& random) {
  const int a = pick(steps, random), start = pick(steps, random), n = static_cast<int>(steps.size());
  for (int i = 0; i < n; ++i) {
    const int b = (start + i) % n;
    if (broadcasts(shape_at(steps, a), shape_at(steps, b)))
      return made(a, broadcast_shapes(shape_at(steps, a), shape_at(steps, b)), {}, b);
  }
  return {};
}

std::optional<Step> draw_reduction(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  const bool keep = below(random, 2);
  Numbers numbers{keep};
  Shape shape;
  const Shape& from = shape_at(steps, a);
  for (size_t i = 0; i < from.size(); ++i) {
    const bool reduced = below(random, 2) || (i + 1 == from.size() && numbers.size() == 1);
    if (reduced) numbers.push_back(static_cast<int64_t>(i));
    if (!reduced) shape.push_back(from[i]);
    else if (keep) shape.push_back(1);
  }
  return made(a, shape, numbers);
}
Shape axes_of(const Step& step) {
  Shape axes;
  for (size_t i = 1; i < step.numbers.size(); ++i) axes.push_back(step.numbers[i]);
  return axes;
}

std::optional<Step> draw_axis(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  return made(a, shape_at(steps, a), {below(random, static_cast<int64_t>(shape_at(steps, a).size()))});
}

std::optional<Step> draw_matmul(const std::vector<Step>& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 2);
  if (a < 0) return {};
  Shape shape = shape_at(steps, a);
  shape[shape.size() - 1] = shape[shape.size() - 2];
  return made(a, shape);
}

std::optional<Step> draw_seeded(const Steps& steps, Random& random) {
  const int a = pick(steps, random);
  return made(a, shape_at(steps, a), {below(random, 1 << 30)});
}
std::optional<Step> draw_plane(const Steps& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 2);
  if (a < 0 || shape_at(steps, a)[shape_at(steps, a).size() - 2] > 12) return {};
  return made(a, shape_at(steps, a), {below(random, 1 << 30)});
}
std::optional<Step> draw_line(const Steps& steps, Random& random) {
  const int a = pick_of_rank(steps, random, 1);
  if (a < 0) return {};
  return made(a, shape_at(steps, a), {below(random, 1 << 30)});
}
Tensor whole(S s, const Shape& shape, T like) {
  Random random(static_cast<uint64_t>(s.numbers[0]));
  std::vector<int64_t> values(static_cast<size_t>(shape.count()));
  for (int64_t& value : values) value = below(random, 17) - 8;
  return Tensor::from(values, shape, like.device());
}
Tensor eighths(S s, const Shape& shape, T like) { return cast(whole(s, shape, like), like.dtype()) * 0.125; }
Tensor mask(S s, T like) { return gt(whole(s, like), 0); }
Tensor times(T x, T number) { return x * (cast(number, x.dtype()) * 0.125); }

Tensor ordered(S s, T x) {
  Random random(static_cast<uint64_t>(s.numbers[0]));
  std::vector<int64_t> order(static_cast<size_t>(x.count()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::shuffle(order.begin(), order.end(), random);
  const Tensor places = cast(Tensor::from(order, x.shape(), x.device()), x.dtype());
  return (places + 0.25 * tanh(x)) * (1 / static_cast<double>(x.count()));
}

}  // namespace plugrad::test
