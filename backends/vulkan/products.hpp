// The parameters of products, for their kernels and for fusions that begin with a product.
#pragma once
#include <backends/vulkan/grid.hpp>

namespace plugrad::vulkan {

// The most products that a dispatch adds for an element: drivers end long-running shaders. The next dispatch adds to the
// result.
inline constexpr int64_t kDepth = 4096;

Product product_of(const Call& call);
// Throws UNSUPPORTED if the result, or the number k of products that an element adds, is too large.
void demand_narrow(const Call& call, int64_t k);

}  // namespace plugrad::vulkan
