// Fusions that begin with a product of f32: one dispatch computes the product and what follows.
#include <backends/vulkan/fusion.hpp>
#include <backends/vulkan/products.hpp>

#include <array>
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
      : FusionKernel(device, run_kernel<run>, nullptr), pipelines_(pipelines), module_(std::move(module)), kept_(fusion) {}

 private:
  static void run(const Call& call) {
    const auto& self = *static_cast<const ProductPipeline*>(call.kernel());
    const ProductAndSpace parameters = self.parameters_of(call.op());
    const VkPipeline pipeline = self.pipeline();
    auto& stream = call.stream<VulkanStream>();
    stream.demand_sound();
    VulkanStream::Recording recording(stream, call.op().number);
    recording.dispatch(pipeline, parameters, std::min(parameters.product.tiles, kMostGroups));
    recording.finish();
  }

  ProductAndSpace parameters_of(const plugrad_op& op) const {
    const Fusion fusion = kept_.fusion();
    plugrad_view result = head_result(fusion, op);
    result.buffer = op.views[op.outputs]->buffer;  // never written: the result stays in registers
    const plugrad_view* views[PLUGRAD_MAX_OPERANDS];
    const plugrad_op head = head_op(fusion, op, result, views);
    const Call product(this, nullptr, &head);
    const int64_t k = product.in(0).shape[result.rank - 1];
    demand_narrow(product, k);
    if (k > kDepth || result.count > kSpan)
      throw BackendError(PLUGRAD_UNSUPPORTED, "a fusion's product takes sums of at most 4096 products, and 2^30 elements");
    ProductAndSpace parameters{product_of(product), {}};
    parameters.product.k = static_cast<uint32_t>(k);
    std::array<int, PLUGRAD_MAX_RANK> axes;
    const auto order = std::span(axes).first(static_cast<size_t>(fusion.rank()));
    std::iota(order.rbegin(), order.rend(), 0);
    set_places(parameters.space, op, space_of(fusion, op), order, head.inputs);
    return parameters;
  }

  VkPipeline pipeline() const {
    return made_.get([this] {
      return pipelines_.compile(module_, 32, {.mode = kept_.fusion().head()->opcode == PLUGRAD_OP_MATMUL_ADD});
    });
  }

  Pipelines& pipelines_;
  const std::vector<uint32_t> module_;
  const KeptFusion kept_;
  const LazyPipeline made_;
};

}  // namespace

std::unique_ptr<FusionKernel> make_product_fusion(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion,
                                                  std::vector<uint32_t> module) {
  return std::make_unique<ProductPipeline>(device, pipelines, fusion, std::move(module));
}

}  // namespace plugrad::vulkan
