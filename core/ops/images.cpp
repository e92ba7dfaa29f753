#include <plugrad/ops/images.hpp>

#include <core/ops/spatial.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/views.hpp>

#include <string>

namespace plugrad {
namespace {
void require_image(const char* name, const Tensor& x, int64_t factor) {
  require_defined(x, name);
  if (x.rank() < 3) refuse(name, "x has shape " + x.shape().text() + ": expected (.., c, h, w)");
  if (factor < 1) refuse(name, "the factor is " + std::to_string(factor) + ": expected 1 or more");
}

// The shape of x with these channels, height and width.
Shape image_shape(const Tensor& x, int64_t channels, int64_t height, int64_t width) {
  Shape shape = x.shape();
  const size_t at = shape.size() - 3;
  shape[at] = channels;
  shape[at + 1] = height;
  shape[at + 2] = width;
  return shape;
}

int64_t leading_count(const Tensor& x) {
  Extent count = 1;
  for (int i = 0; i < x.rank() - 3; ++i) count *= x.size(i);
  return count;
}
}  // namespace

Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor) {
  const Extent f = upscale_factor;
  require_image("pixel_shuffle", x, f);
  const int64_t channels = x.size(-3), height = x.size(-2), width = x.size(-1);
  if (channels % (f * f))
    refuse("pixel_shuffle", "x has shape " + x.shape().text() + ": expected channels that " + std::to_string(f * f) +
                                ", the factor squared, divides");
  const Tensor blocks = reshape(x, {leading_count(x), channels / (f * f), f, f, height, width});
  return reshape(permute(blocks, {0, 1, 4, 2, 5, 3}), image_shape(x, channels / (f * f), height * f, width * f));
}

Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor) {
  const Extent f = downscale_factor;
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
  Extent inner = 1;
  for (int i = 2; i < x.rank(); ++i) inner *= x.size(i);
  const Tensor rows = reshape(x, {x.size(0), groups, x.size(1) / groups, inner});
  return reshape(transpose(rows, 1, 2), x.shape());
}

// --- Windows as columns.

namespace {
constexpr int kAxes = 2;

struct Columns {
  const char* name;
  Shape size, dilation, padding, stride;

  Columns(const char* of, const Shape& kernel_size, const Shape& d, const Shape& p, const Shape& s)
      : name(of), size(per_axis(of, "kernel_size", kernel_size, kAxes, 1)), dilation(per_axis(of, "dilation", d, kAxes, 1)),
        padding(per_axis(of, "padding", p, kAxes, 0)), stride(per_axis(of, "stride", s, kAxes, 1)) {}
  Windows along(int i) const {
    const size_t at = static_cast<size_t>(i);
    return {2 + i, size[at], stride[at], dilation[at]};
  }
};
}  // namespace

Tensor unfold(const Tensor& x, const Shape& kernel_size, const Shape& dilation, const Shape& padding, const Shape& stride) {
  require_defined(x, "unfold");
  const Columns how("unfold", kernel_size, dilation, padding, stride);
  if (x.rank() != 4 && x.rank() != 3)
    refuse("unfold", "x has shape " + x.shape().text() + ": expected (n, c, h, w) or (c, h, w)");
  const Tensor padded = padded_axes(x.rank() == 4 ? x : unsqueeze(x, 0), how.padding, 0);
  Tensor windows = padded;
  for (int i = 0; i < kAxes; ++i) {
    require_window("unfold", padded.shape(), how.along(i));
    windows = windows_of(windows, how.along(i));
  }
  const int64_t positions = windows.size(2) * windows.size(3);
  const Tensor columns =
      reshape(permute(windows, {0, 1, 4, 5, 2, 3}), {windows.size(0), windows.size(1) * how.size.count(), positions});
  return x.rank() == 4 ? columns : squeeze(columns, {0});
}

namespace {
// The numbers of windows in images of output_size.
Shape counts_of(const Columns& how, const Shape& output_size) {
  Shape counts;
  for (int i = 0; i < kAxes; ++i) {
    const size_t at = static_cast<size_t>(i);
    counts.push_back(how.along(i).count(output_size[at] + 2 * Extent(how.padding[at])));
  }
  return counts;
}
}  // namespace

Tensor fold(const Tensor& x, const Shape& output_size, const Shape& kernel_size, const Shape& dilation, const Shape& padding,
            const Shape& stride) {
  require_defined(x, "fold");
  if (x.dtype() == DType::boolean) refuse("fold", "x has dtype bool: cast it to a dtype whose elements can be added");
  if (are_halves(x)) return rounded_once(x, fold, x, output_size, kernel_size, dilation, padding, stride);
  const Columns how("fold", kernel_size, dilation, padding, stride);
  const Shape size = per_axis("fold", "output_size", output_size, kAxes, 1), counts = counts_of(how, size);
  if ((x.rank() != 3 && x.rank() != 2) || x.size(-1) != counts.count() || x.size(-2) % how.size.count())
    refuse("fold", "x has shape " + x.shape().text() + ": expected (n, c " + std::to_string(how.size.count()) + ", " +
                       std::to_string(counts.count()) + "), with as many columns as output_size " + size.text() +
                       " has windows");
  const int64_t batch = x.rank() == 3 ? x.size(0) : 1, channels = x.size(-2) / how.size.count();
  const Tensor columns = reshape(x, {batch, channels, how.size[0], how.size[1], counts[0], counts[1]});
  Tensor out = permute(columns, {0, 1, 4, 5, 2, 3});
  for (int i = kAxes; i-- > 0;) {
    const size_t at = static_cast<size_t>(i);
    out = add_windows(out, size[at] + 2 * Extent(how.padding[at]), how.along(i));
  }
  const Tensor images = pad(out, {-how.padding[1], -how.padding[1], -how.padding[0], -how.padding[0]});
  return x.rank() == 3 ? images : squeeze(images, {0});
}

}  // namespace plugrad
