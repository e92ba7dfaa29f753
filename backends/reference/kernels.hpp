// The kernels missing in the SDK's loops, in one file for each shape of the op table.
#pragma once
#include <plugrad/sdk/loops/elements.hpp>
#include <plugrad/sdk/rows.hpp>

namespace plugrad::reference {
using namespace loops;

Rows rowwise_kernels();
Rows normalization_kernels();
Rows attention_kernels();
Rows window_kernels();
Rows update_kernels();

}  // namespace plugrad::reference
