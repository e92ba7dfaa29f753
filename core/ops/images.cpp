#include <plugrad/ops/images.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/ops/views.hpp>

#include <string>

namespace plugrad {
namespace {
void require_image(const char* name, const Tensor& x, int64_t factor) {
  require_defined(x, name);
  if (x.rank() < 3) refuse(name, "x has shape " + x.shape().text() + ": expected (.., c, h, w)");
  if (factor < 1) refuse(name, "the factor is " + std::to_string(factor) + ": expected 1 or more");
}

// The shape of x with other channels, height and width.
Shape image_shape(const Tensor& x, int64_t channels, int64_t height, int64_t width) {
  Shape shape = x.shape();
  const size_t at = shape.size() - 3;
  shape[at] = channels;
  shape[at + 1] = height;
  shape[at + 2] = width;
  return shape;
}

int64_t leading_count(const Tensor& x) {
  int64_t count = 1;
  for (int i = 0; i < x.rank() - 3; ++i) count *= x.size(i);
  return count;
}
}  // namespace

Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor) {
  const int64_t f = upscale_factor;
  require_image("pixel_shuffle", x, f);
  const int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  if (channels % (f * f))
    refuse("pixel_shuffle", "x has shape " + x.shape().text() + ": expected channels that " + std::to_string(f * f) +
                                ", the factor squared, divides");
  const Tensor blocks = reshape(x, {leading_count(x), channels / (f * f), f, f, height, width});
  return reshape(permute(blocks, {0, 1, 4, 2, 5, 3}), image_shape(x, channels / (f * f), height * f, width * f));
}

Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor) {
  const int64_t f = downscale_factor;
  require_image("pixel_unshuffle", x, f);
  const int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  if (height % f || width % f)
    refuse("pixel_unshuffle",
           "x has shape " + x.shape().text() + ": expected a height and a width that " + std::to_string(f) + " divides");
  const Tensor blocks = reshape(x, {leading_count(x), channels, height / f, f, width / f, f});
  return reshape(permute(blocks, {0, 1, 3, 5, 2, 4}), image_shape(x, channels * f * f, height / f, width / f));
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  require_defined(x, "channel_shuffle");
  if (x.rank() < 3 || groups < 1 || x.size(1) % groups)
    refuse("channel_shuffle", "x has shape " + x.shape().text() + ": expected (n, c, ..) with channels that " +
                                  std::to_string(groups) + " groups divide");
  int64_t inner = 1;
  for (int i = 2; i < x.rank(); ++i) inner *= x.size(i);
  const Tensor rows = reshape(x, {x.size(0), groups, x.size(1) / groups, inner});
  return reshape(transpose(rows, 1, 2), x.shape());
}

}  // namespace plugrad
