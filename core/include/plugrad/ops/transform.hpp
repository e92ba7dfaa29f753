// Functions in place.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>

namespace plugrad {

// Makes x function(x), in its own dtype: x = relu(x) in place. While the write is recorded, the function gets a copy of x,
// because it may save its operand. Throws Error (invalid) with `name` where Tensor::copy_ throws, and if the result has a
// different shape, or fractions for integers, or numbers for bools.
PLUGRAD_API void transform(Tensor& x, const char* name, const std::function<Tensor(const Tensor&)>& function);

}  // namespace plugrad
