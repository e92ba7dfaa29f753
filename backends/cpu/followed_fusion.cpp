#include <backends/cpu/followed_fusion.hpp>

#include <backends/cpu/product.hpp>
#include <backends/cpu/tiled_fusion.hpp>
#include <plugrad/sdk/fusion_block.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace plugrad::cpu {
namespace {

constexpr uint64_t kAlignment = 64;
uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A fusion without its head: the head's result is its first input.
struct Rest {
  std::vector<uint64_t> block;
  std::vector<uint16_t> outputs;  // of the fusion, by the rest's outputs
  int result = -1;                // the output whose memory has the head's result; -1: the workspace
};

Rest rest_of(const Fusion& fusion) {
  const auto inputs = static_cast<uint16_t>(fusion.inputs()), taken = static_cast<uint16_t>(fusion.head_inputs() - 1);
  const auto renumbered = [&](uint16_t value) {
    return static_cast<uint16_t>(value == inputs ? 0 : value - taken - (value > inputs));
  };
  FusionParts parts;
  Rest rest;
  parts.rank = static_cast<uint16_t>(fusion.rank());
  parts.inputs = static_cast<uint16_t>(inputs - taken);
  parts.values.push_back(fusion.values()[inputs]);
  for (uint16_t v = taken + 1; v < fusion.values().size(); ++v)
    if (v != inputs) parts.values.push_back(fusion.values()[v]);
  for (const plugrad_fusion_instruction& each : fusion.instructions().subspan(1)) {
    FusionParts::Line line{each.opcode, {}, each.results};
    for (const uint16_t value : fusion.arguments_of(each)) line.arguments.push_back(renumbered(value));
    if (const auto* const from = static_cast<const std::byte*>(fusion.attributes_of(each)))
      line.attributes.assign(from, from + *reinterpret_cast<const uint32_t*>(from));
    parts.lines.push_back(std::move(line));
  }
  const uint8_t dtype = fusion.values()[inputs].dtype;
  int spare = -1;  // an output of the rest, whose memory the head's result may have before
  for (uint16_t k = 0; k < fusion.outputs().size(); ++k) {
    const auto [value, over] = fusion.outputs()[k];
    if (value == inputs && over == PLUGRAD_FUSION_NONE) {
      rest.result = k;
      continue;
    }
    const bool is_spare = over == PLUGRAD_FUSION_NONE && fusion.values()[value].dtype == dtype;
    if (is_spare && spare < 0) spare = static_cast<int>(rest.outputs.size());
    parts.outputs.push_back({renumbered(value), over == PLUGRAD_FUSION_NONE ? over : renumbered(over)});
    rest.outputs.push_back(k);
  }
  if (rest.result < 0 && spare >= 0) {
    rest.result = rest.outputs[static_cast<size_t>(spare)];
    parts.outputs[static_cast<size_t>(spare)].over = 0;
  }
  rest.block = packed(parts);
  return rest;
}

// Returns the same dense elements with the extents of a space.
plugrad_view in_space(plugrad_view dense, const std::array<int64_t, PLUGRAD_MAX_RANK>& space, int rank) {
  dense.rank = static_cast<uint8_t>(rank);
  int64_t step = 1;
  for (int d = rank; d-- > 0; step *= dense.shape[d]) {
    dense.shape[d] = space[static_cast<size_t>(d)];
    dense.strides[d] = step;
  }
  return dense;
}

// A product, with the rest of the fusion behind it: tile by tile, where the product's tiles allow it.
class FollowedFusion final : public FusionKernel {
 public:
  FollowedFusion(OpenDevice& device, const Fusion& fusion, const KernelRow& head, Rest rest,
                 std::unique_ptr<TiledFusion> tiled, bool flushes)
      : FusionKernel(device, run_kernel<run>, workspace_of), kept_(fusion.block()),
        head_{{sizeof(plugrad_kernel), 0, head.run, head.workspace}, &device, &head}, rest_(std::move(rest)),
        tiled_(std::move(tiled)), flushes_(flushes) {}

 private:
  // The operands of a call, as calls of the head and of the rest.
  struct Calls {
    Calls(const FollowedFusion& of, const plugrad_op& op);
    void place_result(plugrad_buffer* buffer, uint64_t offset);
    void make_head(const FollowedFusion& of, const Fusion& fusion, const plugrad_op& op);
    void make_rest(const FollowedFusion& of, const Fusion& fusion, const plugrad_op& op);
    plugrad_view result, input;  // of the head, and the same of the rest
    const plugrad_view *head_views[PLUGRAD_MAX_OPERANDS], *rest_views[PLUGRAD_FUSION_OPERANDS];
    plugrad_op head, rest;
    uint64_t head_bytes = 0, rest_bytes = 0, result_bytes = 0;
  };
  static FollowedFusion& of(const plugrad_kernel* kernel) {
    return const_cast<FollowedFusion&>(*static_cast<const FollowedFusion*>(kernel));
  }
  Fusion fusion() const { return kept_.fusion(); }

  static uint64_t workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
    const Calls calls(of(kernel), *op);
    if (calls.head_bytes == UINT64_MAX || calls.rest_bytes == UINT64_MAX) return UINT64_MAX;
    return aligned(calls.head_bytes) + aligned(calls.rest_bytes) + calls.result_bytes;
  }

  static void run(const Call& call) {
    FollowedFusion& self = of(call.kernel());
    const Calls calls(self, call.op());
    TiledFusion::Made made;
    const FusionFrame& frame = self.tiled_->demanded_frame(Call(self.tiled_.get(), nullptr, &calls.rest), made);
    const FlushScope scope(self.flushes_);
    if (self.run_followed(calls, frame)) return;
    if (const plugrad_status status = self.head_.run(&self.head_, nullptr, &calls.head))
      throw BackendError(status, "the product of a fusion failed");
    frame.run(calls.rest);
  }

  bool run_followed(const Calls& calls, const FusionFrame& frame) {
    const auto* const product = static_cast<const FollowedProduct*>(head_.row->own);
    const int64_t columns = calls.result.shape[calls.result.rank - 1];
    if (!product || !frame.follows() || columns < FusionFrame::kLeastFollowed) return false;
    FrameParts parts(frame, calls.rest, columns);
    const Following following{[](void* to, int64_t row, int64_t rows, int64_t column, int64_t some) {
                                static_cast<FrameParts*>(to)->run(row, rows, column, some);
                              },
                              [](void* to, int64_t row, int64_t rows, int64_t column, int64_t some) {
                                return static_cast<FrameParts*>(to)->soon(row, rows, column, some);
                              },
                              &parts};
    return product->run(Call(&head_, nullptr, &calls.head), following);
  }

  const KeptFusion kept_;
  const BoundKernel head_;
  const Rest rest_;
  const std::unique_ptr<TiledFusion> tiled_;
  const bool flushes_;
};

FollowedFusion::Calls::Calls(const FollowedFusion& of, const plugrad_op& op) {
  const Fusion fusion = of.fusion();
  result = head_result(fusion, op);
  input = in_space(result, space_of(fusion, op), fusion.rank());
  if (of.rest_.result < 0) result_bytes = static_cast<uint64_t>(result.count) * element_size(result.dtype);
  else place_result(op.views[of.rest_.result]->buffer, op.views[of.rest_.result]->offset);
  make_head(of, fusion, op);
  make_rest(of, fusion, op);
  if (result_bytes) place_result(op.workspace, rest.workspace_offset + aligned(rest_bytes));
}

void FollowedFusion::Calls::place_result(plugrad_buffer* buffer, uint64_t offset) {
  for (plugrad_view* each : {&result, &input}) {
    each->buffer = buffer;
    each->offset = offset;
  }
}

void FollowedFusion::Calls::make_head(const FollowedFusion& of, const Fusion& fusion, const plugrad_op& op) {
  head = head_op(fusion, op, result, head_views);
  if (of.head_.workspace) head_bytes = of.head_.workspace(&of.head_, &head);
  head.workspace_bytes = head_bytes;
}

void FollowedFusion::Calls::make_rest(const FollowedFusion& of, const Fusion& fusion, const plugrad_op& op) {
  const size_t outputs = of.rest_.outputs.size(), inputs = fusion.inputs() - fusion.head_inputs();
  for (size_t k = 0; k < outputs; ++k) rest_views[k] = op.views[of.rest_.outputs[k]];
  rest_views[outputs] = &input;
  std::copy_n(op.views + op.outputs + fusion.head_inputs(), inputs, rest_views + outputs + 1);
  rest = op;
  rest.views = rest_views;
  rest.attributes = of.rest_.block.data();
  rest.outputs = static_cast<uint16_t>(outputs);
  rest.inputs = static_cast<uint16_t>(inputs + 1);
  rest.workspace_offset = op.workspace_offset + aligned(head_bytes);
  rest_bytes = TiledFusion::workspace_of(of.tiled_.get(), &rest);
  rest.workspace_bytes = rest_bytes;
}

}  // namespace

std::unique_ptr<FusionKernel> make_followed(OpenDevice& device, const Fusion& fusion, const FusionSettings& settings) {
  const plugrad_signature signature = fusion.signature_of(*fusion.head(), fusion.inputs(), kPlainFlags);
  const auto row = std::find_if(settings.rows.begin(), settings.rows.end(),
                                [&](const KernelRow& each) { return each.serves(signature); });
  const auto results = std::count_if(fusion.outputs().begin(), fusion.outputs().end(),
                                     [&](const plugrad_fusion_output& each) { return each.value == fusion.inputs(); });
  if (row == settings.rows.end() || fusion.instructions().size() < 2 || results > 1) return nullptr;
  Rest rest = rest_of(fusion);
  auto tiled = make_tiled(device, Fusion(*reinterpret_cast<const plugrad_fusion*>(rest.block.data())), settings, true);
  if (!tiled) return nullptr;
  return std::make_unique<FollowedFusion>(device, fusion, *row, std::move(rest), std::move(tiled), settings.flushes);
}

}  // namespace plugrad::cpu
