// Functions of one element, and the ends of a type's range.
#pragma once
#include <cuda_runtime.h>
#include <plugrad/sdk/functions.hpp>

#include <limits>

namespace plugrad::cuda {

// The ends of a type's range; for floating types the infinities.
template <class T>
inline constexpr T kTop = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
template <class T>
inline constexpr T kBottom =
    std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();

template <class T> __device__ __forceinline__ bool is_nan(T x) { return x != x; }

using Add = OpFunction<PLUGRAD_OP_ADD>;
using Multiply = OpFunction<PLUGRAD_OP_MUL>;
using Maximum = OpFunction<PLUGRAD_OP_MAXIMUM>;
using Minimum = OpFunction<PLUGRAD_OP_MINIMUM>;

}  // namespace plugrad::cuda
