// Functions in place.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>

namespace plugrad {

// Makes x function(x), in its own dtype: x = relu(x) in place. Where that is recorded, the function gets a copy of x,
// because it may save its operand. Throws Error (invalid), which names `name`, where Tensor::copy_ does, and if the result
// has another shape, or fractions for integers, or numbers for bools.
PLUGRAD_API void transform(Tensor& x, const char* name, const std::function<Tensor(const Tensor&)>& function);

}  // namespace plugrad
