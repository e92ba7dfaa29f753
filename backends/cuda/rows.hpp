// The kernel rows, a table for each CUDA source; and what the tables are written with.
#pragma once
#include <plugrad/sdk/backend.hpp>

namespace plugrad::cuda {

Rows arithmetic_rows();
Rows function_rows();
Rows comparison_rows();
Rows copy_rows();
Rows cast_rows();
Rows gradient_rows();
Rows update_rows();
Rows sum_rows();
Rows extreme_rows();
Rows argmax_rows();
Rows softmax_rows();
Rows cross_entropy_rows();
Rows random_rows();
Rows matmul_rows();
Rows indexing_rows();

// A list of element types: one row for each. A further dtype is one more name here, where its arithmetic exists.
template <class... T> struct Types {};
inline constexpr Types<float, double> kFloating;            // F of ops.def
inline constexpr Types<float, double, int64_t> kNumbers;    // N
inline constexpr Types<float, double, int64_t, bool> kAny;  // T

// What kernels that read single elements of an operand do not take.
inline constexpr uint16_t kMemoryOnly = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;

template <size_t... Sizes> constexpr auto join(const std::array<KernelRow, Sizes>&... parts) {
  std::array<KernelRow, (Sizes + ...)> all{};
  size_t filled = 0;
  const auto append = [&](const auto& part) {
    for (const KernelRow& row : part) all[filled++] = row;
  };
  (append(parts), ...);
  return all;
}

}  // namespace plugrad::cuda
