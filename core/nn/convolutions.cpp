#include <plugrad/nn/convolutions.hpp>

#include <plugrad/ops/convolution.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::nn {
namespace {
Shape for_each_axis(const Shape& kernel_size, int axes) {
  Shape all = kernel_size;
  while (all.rank() == 0 || (kernel_size.rank() == 1 && all.rank() < axes)) all.push_back(all.empty() ? 0 : all[0]);
  return all;
}

void require_sizes(int64_t in, int64_t out, const Shape& kernel, int axes, int64_t groups) {
  const bool positive = in > 0 && out > 0 && groups > 0 && std::ranges::all_of(kernel, [](int64_t k) { return k > 0; });
  if (positive && kernel.rank() == axes && in % groups == 0 && out % groups == 0) return;
  throw Error(Code::invalid, "[conv] " + std::to_string(in) + " and " + std::to_string(out) + " channels, groups " +
                                 std::to_string(groups) + ", kernel " + kernel.text() +
                                 ": expected positive numbers, groups that divide both, and " + std::to_string(axes) +
                                 " extents or one");
}
}  // namespace

ConvolutionBase::ConvolutionBase(int axes, bool transposed, int64_t in_channels, int64_t out_channels,
                                 const Shape& kernel_size, const ConvolutionOptions& options)
    : options_(options), in_channels_(in_channels), out_channels_(out_channels),
      kernel_size_(for_each_axis(kernel_size, axes)) {
  require_sizes(in_channels, out_channels, kernel_size_, axes, options.groups);
  Shape shape =
      transposed ? Shape{in_channels, out_channels / options.groups} : Shape{out_channels, in_channels / options.groups};
  for (const int64_t extent : kernel_size_) shape.push_back(extent);
  const int64_t weights_of_a_result = shape.count() / shape[0];
  const double bound = 1 / std::sqrt(static_cast<double>(weights_of_a_result));
  weight = rand(shape, options.dtype, options.device, -bound, bound).requires_grad_();
  if (options.bias) bias = rand({out_channels}, options.dtype, options.device, -bound, bound).requires_grad_();
}

void ConvolutionBase::members(Members& all) { all("weight", weight), all("bias", bias); }

std::string ConvolutionBase::detail() const {
  return std::to_string(in_channels_) + ", " + std::to_string(out_channels_) + ", kernel_size=" + kernel_size_.text();
}

Tensor Conv1d::forward(const Tensor& x) const {
  return conv1d(x, weight, bias, options_.stride, options_.padding, options_.dilation, options_.groups);
}
Tensor Conv2d::forward(const Tensor& x) const {
  return conv2d(x, weight, bias, options_.stride, options_.padding, options_.dilation, options_.groups);
}
Tensor Conv3d::forward(const Tensor& x) const {
  return conv3d(x, weight, bias, options_.stride, options_.padding, options_.dilation, options_.groups);
}
Tensor ConvTranspose1d::forward(const Tensor& x) const {
  return conv_transpose1d(x, weight, bias, options_.stride, options_.padding, options_.output_padding, options_.groups,
                          options_.dilation);
}
Tensor ConvTranspose2d::forward(const Tensor& x) const {
  return conv_transpose2d(x, weight, bias, options_.stride, options_.padding, options_.output_padding, options_.groups,
                          options_.dilation);
}
Tensor ConvTranspose3d::forward(const Tensor& x) const {
  return conv_transpose3d(x, weight, bias, options_.stride, options_.padding, options_.output_padding, options_.groups,
                          options_.dilation);
}

}  // namespace plugrad::nn
