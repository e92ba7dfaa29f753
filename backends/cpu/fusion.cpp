#include <backends/cpu/fusion.hpp>

#include <backends/cpu/fusion_frame.hpp>
#include <backends/cpu/machine.hpp>

#include <atomic>
#include <utility>

namespace plugrad::cpu {
namespace {
constexpr int kFrames = 16;  // kept, of as many shapes

bool is_steady(const plugrad_view& exponent) {
  if (!is_immediate(exponent)) return false;
  const double y = immediate<double>(exponent);
  return y == 2 || y == 1 || y == 3 || y == -1 || y == 0.5;
}

class TiledFusion final : public FusionKernel {
 public:
  TiledFusion(OpenDevice& device, FusionPlan plan, int rank, const FusionSettings& settings)
      : FusionKernel(device, run_kernel<run>, workspace_of), plan_(std::move(plan)), rank_(rank), threads_(settings.threads),
        flushes_(settings.flushes) {}
  ~TiledFusion() override {
    for (Link* each = frames_; each;) delete std::exchange(each, each->next);
  }

 private:
  static TiledFusion& of(const plugrad_kernel* kernel) {
    return const_cast<TiledFusion&>(*static_cast<const TiledFusion*>(kernel));
  }

  static uint64_t workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
    try {
      std::unique_ptr<const FusionFrame> made;
      const FusionFrame& frame = of(kernel).frame_for(*op, made);
      return frame.serves() ? frame.workspace() : 0;
    } catch (const std::bad_alloc&) {
      return UINT64_MAX;
    }
  }

  static void run(const Call& call) {
    TiledFusion& self = of(call.kernel());
    const plugrad_op& op = call.op();
    std::unique_ptr<const FusionFrame> made;
    const FusionFrame& frame = self.frame_for(op, made);
    if (!frame.serves()) throw BackendError(PLUGRAD_UNSUPPORTED, "a fusion of these shapes");
    for (const SteadyExponent& each : self.plan_.exponents)
      if (!is_steady(call.in(each.input))) throw BackendError(PLUGRAD_UNSUPPORTED, "a fusion with POW of this exponent");
    if (!self.flushes_) return frame.run(op);
    const uint32_t mode = float_mode();
    set_float_mode(flushing(mode));
    frame.run(op);
    set_float_mode(mode);
  }

  struct Link {
    std::unique_ptr<const FusionFrame> frame;
    Link* next;
    int count;  // of the list from here on
  };

  // Returns the frame of these shapes; `made` owns the frame if there is no room to keep it. Takes no lock: each replay
  // calls it, and a forked child may.
  const FusionFrame& frame_for(const plugrad_op& op, std::unique_ptr<const FusionFrame>& made) {
    Link* const first = frames_.load(std::memory_order_acquire);
    for (const Link* each = first; each; each = each->next)
      if (each->frame->is_for(op)) return *each->frame;
    auto fresh = std::make_unique<FusionFrame>(plan_, rank_, threads_, op);
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

  const FusionPlan plan_;
  const int rank_, threads_;
  const bool flushes_;
  std::atomic<Link*> frames_{nullptr};
};
}  // namespace

std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& block, const FusionSettings& settings) {
  const Fusion fusion(block);
  std::optional<FusionPlan> plan = plan_of(fusion, settings.rows, settings.vector_bytes);
  if (!plan) return nullptr;
  return std::make_unique<TiledFusion>(device, std::move(*plan), fusion.rank(), settings);
}

}  // namespace plugrad::cpu
