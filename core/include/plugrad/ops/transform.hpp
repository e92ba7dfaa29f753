// Applies functions to tensors in place.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>

namespace plugrad {

// Writes function(x) into x, in x's dtype; with relu, x = relu(x) in place. While the write is recorded, the function gets a
// copy of x, because the function may save its operand. Throws Error (invalid) with `name` where Tensor::copy_ throws, if
// the result has a different shape, and if the result has fractions but x integers, or numbers but x bools.
PLUGRAD_API void transform(Tensor& x, const char* name, const std::function<Tensor(const Tensor&)>& function);

}  // namespace plugrad
