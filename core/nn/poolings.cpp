#include <plugrad/nn/poolings.hpp>

namespace plugrad::nn {

Tensor AvgPool1d::forward(const Tensor& x) const {
  return avg_pool1d(x, kernel_size_, options_.stride, options_.padding, options_.ceil_mode, options_.count_include_pad);
}
Tensor AvgPool2d::forward(const Tensor& x) const {
  return avg_pool2d(x, kernel_size_, options_.stride, options_.padding, options_.ceil_mode, options_.count_include_pad);
}
Tensor AvgPool3d::forward(const Tensor& x) const {
  return avg_pool3d(x, kernel_size_, options_.stride, options_.padding, options_.ceil_mode, options_.count_include_pad);
}

}  // namespace plugrad::nn
