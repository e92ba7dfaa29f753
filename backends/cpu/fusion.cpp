#include <backends/cpu/fusion.hpp>

#include <backends/cpu/followed_fusion.hpp>
#include <backends/cpu/tiled_fusion.hpp>

#include <optional>

namespace plugrad::cpu {
namespace {
constexpr int kFrames = 16;  // kept, of as many shapes

bool is_steady(const plugrad_view& exponent) {
  if (!is_immediate(exponent)) return false;
  const double y = immediate<double>(exponent);
  return y == 2 || y == 1 || y == 3 || y == -1 || y == 0.5;
}
}  // namespace

const FusionFrame& TiledFusion::demanded_frame(const Call& call, Made& made) {
  const FusionFrame& frame = frame_for(call.op(), made);
  if (!frame.serves()) throw BackendError(PLUGRAD_UNSUPPORTED, "a fusion of these shapes");
  for (const SteadyExponent& each : plan_.exponents)
    if (!is_steady(call.in(each.input))) throw BackendError(PLUGRAD_UNSUPPORTED, "a fusion with POW of this exponent");
  return frame;
}

uint64_t TiledFusion::workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
  try {
    Made made;
    const FusionFrame& frame = of(kernel).frame_for(*op, made);
    return frame.serves() ? frame.workspace() : 0;
  } catch (const std::bad_alloc&) {
    return UINT64_MAX;
  }
}

void TiledFusion::run(const Call& call) {
  TiledFusion& self = of(call.kernel());
  Made made;
  const FusionFrame& frame = self.demanded_frame(call, made);
  const FlushScope scope(self.flushes_);
  frame.run(call.op());
}

// Takes no lock: each replay calls it, and a forked child may.
const FusionFrame& TiledFusion::frame_for(const plugrad_op& op, Made& made) {
  Link* const first = frames_.load(std::memory_order_acquire);
  for (const Link* each = first; each; each = each->next)
    if (each->frame->is_for(op)) return *each->frame;
  auto fresh = std::make_unique<FusionFrame>(plan_, rank_, threads_, op, follows_);
  const FusionFrame& frame = *fresh;
  const bool is_kept = !first || first->count < kFrames;
  if (is_kept) fresh->use_far_code();
  made = std::move(fresh);
  if (!is_kept) return frame;
  auto link = std::make_unique<Link>(Link{nullptr, first, first ? first->count + 1 : 1});
  Link* expected = first;
  link->frame = std::move(made);
  if (frames_.compare_exchange_strong(expected, link.get(), std::memory_order_acq_rel)) link.release();
  else made = std::move(link->frame);  // another thread was faster
  return frame;
}

std::unique_ptr<TiledFusion> make_tiled(OpenDevice& device, const Fusion& fusion, const FusionSettings& settings,
                                        bool follows) {
  std::optional<FusionPlan> plan = plan_of(fusion, settings.rows, settings.vector_bytes);
  if (!plan) return nullptr;
  return std::make_unique<TiledFusion>(device, std::move(*plan), fusion.rank(), settings, follows);
}

std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& block, const FusionSettings& settings) {
  const Fusion fusion(block);
  if (fusion.head()) return make_followed(device, fusion, settings);
  return make_tiled(device, fusion, settings, false);
}

}  // namespace plugrad::cpu
