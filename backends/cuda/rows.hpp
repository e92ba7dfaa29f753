// The kernel rows, one table per group of kernels.
#pragma once
#include <plugrad/sdk/rows.hpp>

namespace plugrad::cuda {

Rows arithmetic_rows();
Rows function_rows();
Rows comparison_rows();
Rows copy_rows();
Rows update_rows();
Rows sum_rows();
Rows extreme_rows();
Rows argmax_rows();
Rows softmax_rows();
Rows cross_entropy_rows();
Rows row_norm_rows();
Rows batch_norm_rows();
Rows cumsum_rows();
Rows topk_rows();
Rows argsort_rows();
Rows random_rows();
Rows matmul_rows();
Rows quantized_rows();
Rows attention_rows();
Rows attention_backward_rows();
Rows convolution_rows();
Rows indexing_rows();
Rows pooling_rows();

// The floating types of kernels whose work outweighs the conversion of halves: products, attention, convolutions and rows.
inline constexpr Types<float, double, BFloat16, Float16> kWithHalves{};

// The layouts of kernels without immediate operands.
inline constexpr uint16_t kMemoryOnly = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;

}  // namespace plugrad::cuda
