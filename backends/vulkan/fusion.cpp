#include <backends/vulkan/fusion.hpp>

#include <backends/vulkan/fusion_module.hpp>
#include <backends/vulkan/grid.hpp>

#include <bit>
#include <cstring>

namespace plugrad::vulkan {
namespace {

enum : uint32_t { kWithoutReductions = 0, kByInvocation = 1, kByGroup = 2 };  // the template's MODE
enum : uint32_t { kOfRows = 0, kOfChunks = 1, kOfPartials = 2 };              // Space's pass

class Pipeline final : public FusionKernel {
 public:
  Pipeline(OpenDevice& device, Pipelines& pipelines, int rank, FusionModule module)
      : FusionKernel(device, run_kernel<run>, workspace), pipelines_(pipelines), rank_(rank), module_(std::move(module)) {}

 private:
  static void run(const Call& call);
  static uint64_t workspace(const plugrad_kernel* kernel, const plugrad_op* op) noexcept;
  std::vector<int> axes() const;
  struct Rows {
    int64_t count = 1, extent = 1;
    uint64_t chunks() const { return (static_cast<uint64_t>(extent) + kChunk - 1) / kChunk; }
  };
  Rows rows_of(const plugrad_op& op) const;
  Space space_for(const plugrad_op& op) const;
  VkPipeline made(uint32_t mode) const;

  Pipelines& pipelines_;
  const int rank_;
  const FusionModule module_;
  const std::array<LazyPipeline, 3> made_{};  // by mode
};

// Throws UNSUPPORTED if offsets do not fit 32 bits.
void demand_reach(const plugrad_view& view) {
  int64_t reach = 0;
  for (int d = 0; d < view.rank; ++d) reach += std::abs(view.strides[d]) * (view.shape[d] - 1);
  if (reach > kSpan) throw BackendError(PLUGRAD_UNSUPPORTED, "an operand of the fusion reaches too far");
}

// Returns the axes of the space from the innermost on: the reduced axes, then the kept axes.
std::vector<int> Pipeline::axes() const {
  std::vector<int> list;
  for (const bool reduced : {true, false})
    for (int d = rank_ - 1; d >= 0; --d)
      if ((module_.reduced >> d & 1) == reduced) list.push_back(d);
  return list;
}

Pipeline::Rows Pipeline::rows_of(const plugrad_op& op) const {
  const auto extents = space_of(op, rank_);
  Rows rows;
  for (int d = 0; d < rank_; ++d) (module_.reduced >> d & 1 ? rows.extent : rows.count) *= extents[d];
  return rows;
}

uint64_t Pipeline::workspace(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
  const auto& self = *static_cast<const Pipeline*>(kernel);
  const Rows rows = self.rows_of(*op);
  if (rows.chunks() == 1) return 0;
  return self.module_.reductions.size() * static_cast<uint64_t>(rows.count) * rows.chunks() * sizeof(float);
}

Space Pipeline::space_for(const plugrad_op& op) const {
  const auto extents = space_of(op, rank_);
  const std::vector<int> order = axes();
  const Rows rows = rows_of(op);
  if (rows.count * rows.extent > kSpan) throw BackendError(PLUGRAD_UNSUPPORTED, "the fusion has too many elements");
  if (module_.goes_on && static_cast<uint64_t>(rows.extent) > kChunk)
    throw BackendError(PLUGRAD_UNSUPPORTED, "the fusion's rows are too long");
  Space space{};
  space.count = static_cast<uint32_t>(rows.count * rows.extent);
  space.rows = static_cast<uint32_t>(rows.count);
  space.row = static_cast<uint32_t>(rows.extent);
  space.span = kChunk;
  space.chunks = static_cast<uint32_t>(rows.chunks());
  space.reductions = static_cast<uint32_t>(module_.reductions.size());
  std::ranges::copy(module_.reductions, space.op);
  set_places(space, op, extents, order, 0);
  return space;
}

// Returns the pipeline of a mode.
VkPipeline Pipeline::made(uint32_t mode) const {
  return made_[mode].get([&] { return pipelines_.compile(module_.words, 32, {.mode = mode}); });
}

// Reductions take the passes of reduce.comp, so their results have the same bits.
void Pipeline::run(const Call& call) {
  const auto& self = *static_cast<const Pipeline*>(call.kernel());
  Space space = self.space_for(call.op());
  space.partials = reinterpret_cast<uint64_t>(call.workspace());
  space.pass = space.chunks > 1 ? kOfChunks : kOfRows;
  const bool by_group = space.reductions && reduces_by_group(space.rows, space.row);
  const VkPipeline pipeline = self.made(by_group ? kByGroup : space.reductions ? kByInvocation : kWithoutReductions);
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  VulkanStream::Recording recording(stream, call.op().number);
  const uint32_t groups = by_group ? std::min(space.rows * space.chunks, kMostGroups) : groups_for(space.rows);
  recording.dispatch(pipeline, space, groups);
  if (space.pass == kOfChunks) {
    recording.barrier();
    space.pass = kOfPartials;
    recording.dispatch(pipeline, space, std::min(space.rows, kMostGroups));
  }
  recording.finish();
}

}  // namespace

void set_places(Space& space, const plugrad_op& op, std::span<const int64_t> extents, std::span<const int> order,
                int head_inputs) {
  space.rank = static_cast<uint32_t>(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Divider divider(static_cast<uint32_t>(extents[static_cast<size_t>(order[i])]));
    space.divisor[i] = divider.divisor;
    space.magic[i] = divider.magic;
    space.shift[i] = divider.shift;
  }
  for (int k = 0; k < op.outputs + op.inputs; ++k) {
    if (k >= op.outputs && k < op.outputs + head_inputs) continue;
    const Box::Operand operand(*op.views[k]);
    space.base[k] = reinterpret_cast<uint64_t>(operand.base);
    space.value[k] = operand.value;
    if (!operand.base) continue;
    demand_reach(*op.views[k]);
    for (size_t i = 0; i < order.size(); ++i) space.stride[k][i] = static_cast<int32_t>(stride_of(*op.views[k], order[i]));
  }
}

std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, Pipelines& pipelines, const plugrad_fusion& fusion) {
  FusionModule module = module_of(fusion);
  if (module.words.empty()) return nullptr;
  if (Fusion(fusion).head()) return make_product_fusion(device, pipelines, fusion, std::move(module.words));
  return std::make_unique<Pipeline>(device, pipelines, fusion.rank, std::move(module));
}

}  // namespace plugrad::vulkan
