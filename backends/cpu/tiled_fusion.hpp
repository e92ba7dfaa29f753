// A fusion that runs by tiles, alone or behind a product.
#pragma once
#include <backends/cpu/fusion.hpp>
#include <backends/cpu/fusion_frame.hpp>
#include <backends/cpu/machine.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace plugrad::cpu {

// Sets the mode of denormal numbers in its scope.
class FlushScope {
 public:
  explicit FlushScope(bool flushes) : flushes_(flushes), mode_(flushes ? float_mode() : 0) {
    if (flushes_) set_float_mode(flushing(mode_));
  }
  ~FlushScope() {
    if (flushes_) set_float_mode(mode_);
  }
  FlushScope(const FlushScope&) = delete;

 private:
  const bool flushes_;
  const uint32_t mode_;
};

class TiledFusion final : public FusionKernel {
 public:
  // follows: the fusion is the rest of a fusion with a head.
  TiledFusion(OpenDevice& device, FusionPlan plan, int rank, const FusionSettings& settings, bool follows)
      : FusionKernel(device, run_kernel<run>, workspace_of), plan_(std::move(plan)), rank_(rank), threads_(settings.threads),
        flushes_(settings.flushes), follows_(follows) {}
  ~TiledFusion() override {
    for (Link* each = frames_; each;) delete std::exchange(each, each->next);
  }

  // The frame for the operands of a call; `made` owns it if it is not kept.
  using Made = std::unique_ptr<const FusionFrame>;
  const FusionFrame& frame_for(const plugrad_op& op, Made& made);
  // The same. Throws UNSUPPORTED for operands that it does not run.
  const FusionFrame& demanded_frame(const Call& call, Made& made);
  static uint64_t workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept;

 private:
  static TiledFusion& of(const plugrad_kernel* kernel) {
    return const_cast<TiledFusion&>(*static_cast<const TiledFusion*>(kernel));
  }

  static void run(const Call& call);

  struct Link {
    std::unique_ptr<const FusionFrame> frame;
    Link* next;
    int count;  // of the list from here on
  };

  const FusionPlan plan_;
  const int rank_, threads_;
  const bool flushes_, follows_;
  std::atomic<Link*> frames_{nullptr};
};

// Returns nothing if the rows of the settings do not suffice.
std::unique_ptr<TiledFusion> make_tiled(OpenDevice& device, const Fusion& fusion, const FusionSettings& settings,
                                        bool follows);

}  // namespace plugrad::cpu
