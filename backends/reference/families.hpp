// The kernels, a file per family of the op table; and what their tables of rows are written with.
#pragma once
#include <plugrad/sdk/backend.hpp>

namespace plugrad::reference {

Rows elementwise_rows();
Rows reduce_rows();
Rows matmul_rows();
Rows indexing_rows();
Rows random_rows();
Rows backward_rows();
Rows update_rows();

// A list of element types: one row for each.
template <class... T> struct Types {};
inline constexpr Types<float, double> kFloating;            // F of ops.def
inline constexpr Types<float, double, int64_t> kNumbers;    // N
inline constexpr Types<float, double, int64_t, bool> kAny;  // T

// A family's table, from arrays of rows.
template <size_t... Sizes> constexpr auto join(const std::array<KernelRow, Sizes>&... parts) {
  std::array<KernelRow, (Sizes + ...)> all{};
  size_t filled = 0;
  const auto append = [&](const auto& part) {
    for (const KernelRow& row : part) all[filled++] = row;
  };
  (append(parts), ...);
  return all;
}

}  // namespace plugrad::reference
