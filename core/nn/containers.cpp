#include <plugrad/nn/containers.hpp>

namespace plugrad::nn {

void ModuleList::members(Members& all) {
  for (size_t i = 0; i < modules_.size(); ++i) all(std::to_string(i), modules_[i]);
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor value = x;
  for (const auto& module : *this) value = (*module)(value);
  return value;
}

}  // namespace plugrad::nn
