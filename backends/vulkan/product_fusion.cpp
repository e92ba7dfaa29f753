// Fusions that begin with a product of f32: one dispatch computes the product and what follows.
#include <backends/vulkan/fusion.hpp>
#include <backends/vulkan/products.hpp>

#include <atomic>
#include <numeric>

namespace plugrad::vulkan {
namespace {

struct ProductAndSpace {
  Product product;
  Space space;
};
static_assert(offsetof(ProductAndSpace, space) == 416);  // SIZE_OF_PRODUCT of product.glsl

class ProductPipeline final : public FusionKernel {
 public:
  ProductPipeline(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion, std::vector<uint32_t> module)
      : FusionKernel(device, run_kernel<run>, nullptr), pipelines_(pipelines), module_(std::move(module)),
        block_(reinterpret_cast<const uint64_t*>(&fusion),
               reinterpret_cast<const uint64_t*>(&fusion) + fusion.struct_size / sizeof(uint64_t)) {}

 private:
  static void run(const Call& call) {
    const auto& self = *static_cast<const ProductPipeline*>(call.kernel());
    const ProductAndSpace parameters = self.parameters_of(call.op());
    const VkPipeline pipeline = self.made();
    auto& stream = call.stream<VulkanStream>();
    stream.demand_sound();
    VulkanStream::Recording recording(stream, call.op().number);
    recording.dispatch(pipeline, parameters, std::min(parameters.product.tiles, kMostGroups));
    recording.finish();
  }

  ProductAndSpace parameters_of(const plugrad_op& op) const {
    const Fusion fusion(*reinterpret_cast<const plugrad_fusion*>(block_.data()));
    const int head_inputs = static_cast<int>(fusion.head_inputs());
    plugrad_view result = head_result(fusion, op);
    result.buffer = op.views[op.outputs]->buffer;  // never written: the result stays in registers
    const plugrad_view* views[PLUGRAD_MAX_OPERANDS] = {&result};
    std::copy_n(op.views + op.outputs, head_inputs, views + 1);
    plugrad_op head = op;
    head.opcode = fusion.head()->opcode;
    head.flags = kPlainFlags;
    head.views = views;
    head.outputs = 1;
    head.inputs = static_cast<uint16_t>(head_inputs);
    const Call product(this, nullptr, &head);
    const int64_t k = product.in(0).shape[result.rank - 1];
    demand_narrow(product, k);
    if (k > kDepth || result.count > kSpan)
      throw BackendError(PLUGRAD_UNSUPPORTED, "a fusion's product takes sums of at most 4096 products, and 2^30 elements");
    ProductAndSpace parameters{product_of(product), {}};
    parameters.product.k = static_cast<uint32_t>(k);
    std::vector<int> order(static_cast<size_t>(fusion.rank()));
    std::iota(order.rbegin(), order.rend(), 0);
    set_places(parameters.space, op, space_of(fusion, op), order, head_inputs);
    return parameters;
  }

  // The first use takes the time of a compilation.
  VkPipeline made() const {
    if (const VkPipeline known = made_.load(std::memory_order_acquire)) return known;
    const std::lock_guard lock(mutex_);
    const Fusion fusion(*reinterpret_cast<const plugrad_fusion*>(block_.data()));
    if (!made_) made_ = pipelines_.compile(module_, 32, {.mode = fusion.head()->opcode == PLUGRAD_OP_MATMUL_ADD});
    return made_;
  }

  Pipelines& pipelines_;
  const std::vector<uint32_t> module_;
  const std::vector<uint64_t> block_;
  mutable std::mutex mutex_;
  mutable std::atomic<VkPipeline> made_{};
};

}  // namespace

std::unique_ptr<FusionKernel> make_product_fusion(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion,
                                                  std::vector<uint32_t> module) {
  return std::make_unique<ProductPipeline>(device, pipelines, fusion, std::move(module));
}

}  // namespace plugrad::vulkan
