// The kernels, in one file for each shape of the op table.
#pragma once
#include <plugrad/sdk/rows.hpp>

namespace plugrad::reference {

Rows elementwise_kernels();  // and those of shape generate and copy
Rows reduction_kernels();
Rows rowwise_kernels();
Rows normalization_kernels();
Rows contraction_kernels();  // but attention
Rows attention_kernels();
Rows window_kernels();
Rows indexing_kernels();
Rows random_kernels();
Rows update_kernels();

}  // namespace plugrad::reference
