// The type in which kernels form sums and intermediate results of a storage type.
#pragma once
#include <plugrad/sdk/dtypes.hpp>

namespace plugrad::cuda {

template <class T> using AccumulatorOf = ComputeType<T>;

}  // namespace plugrad::cuda
