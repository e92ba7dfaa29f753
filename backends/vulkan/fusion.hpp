// Fusions of compiled steps as pipelines: sdk/fusion.h.
#pragma once
#include <backends/vulkan/parameters.hpp>
#include <backends/vulkan/pipelines.hpp>

#include <plugrad/sdk/fusion.hpp>

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

namespace plugrad::vulkan {

// A pipeline that its first use compiles.
class LazyPipeline {
 public:
  template <class Compile> VkPipeline get(Compile compile) const {
    if (const VkPipeline known = made_.load(std::memory_order_acquire)) return known;
    const std::lock_guard lock(mutex_);
    if (!made_) made_ = compile();
    return made_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::atomic<VkPipeline> made_{};
};

// Returns the kernel, or null if module_of writes no module.
std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion);
// Returns the kernel of a fusion that begins with a product.
std::unique_ptr<FusionKernel> make_product_fusion(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion,
                                                  std::vector<uint32_t> module);

// Sets how a shader finds the operands at a place of the space, except the operands of the head. order: the axes from the
// innermost on.
void set_places(Space& space, const plugrad_op& op, std::span<const int64_t> extents, std::span<const int> order,
                int head_inputs);

}  // namespace plugrad::vulkan
