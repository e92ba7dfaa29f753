#include <backends/cpu/program.hpp>

#include <backends/cpu/machine.hpp>
#include <backends/cpu/program_frame.hpp>

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

class TiledProgram final : public ProgramKernel {
 public:
  TiledProgram(OpenDevice& device, ProgramPlan plan, int rank, const ProgramSettings& settings)
      : ProgramKernel(device, run_kernel<run>, workspace_of), plan_(std::move(plan)), rank_(rank),
        threads_(settings.threads), flushes_(settings.flushes) {}
  ~TiledProgram() override {
    for (Link* each = frames_; each;) delete std::exchange(each, each->next);
  }

 private:
  static TiledProgram& of(const plugrad_kernel* kernel) {
    return const_cast<TiledProgram&>(*static_cast<const TiledProgram*>(kernel));
  }

  static uint64_t workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
    try {
      std::unique_ptr<const ProgramFrame> made;
      const ProgramFrame& frame = of(kernel).frame_for(*op, made);
      return frame.serves() ? frame.workspace() : 0;
    } catch (const std::bad_alloc&) {
      return UINT64_MAX;
    }
  }

  static void run(const Call& call) {
    TiledProgram& self = of(call.kernel());
    const plugrad_op& op = call.op();
    std::unique_ptr<const ProgramFrame> made;
    const ProgramFrame& frame = self.frame_for(op, made);
    if (!frame.serves()) throw BackendError(PLUGRAD_UNSUPPORTED, "a program of these shapes");
    for (const SteadyExponent& each : self.plan_.exponents)
      if (!is_steady(call.in(each.input))) throw BackendError(PLUGRAD_UNSUPPORTED, "a program with POW of this exponent");
    if (!self.flushes_) return frame.run(op);
    const uint32_t mode = float_mode();
    set_float_mode(flushing(mode));
    frame.run(op);
    set_float_mode(mode);
  }

  struct Link {
    std::unique_ptr<const ProgramFrame> frame;
    Link* next;
    int count;  // of the list from here on
  };

  // The frame of these shapes, which lies in `made` if there is no room to keep it. Takes no lock: each replay comes here,
  // and a forked child too.
  const ProgramFrame& frame_for(const plugrad_op& op, std::unique_ptr<const ProgramFrame>& made) {
    Link* const first = frames_.load(std::memory_order_acquire);
    for (const Link* each = first; each; each = each->next)
      if (each->frame->is_for(op)) return *each->frame;
    auto fresh = std::make_unique<ProgramFrame>(plan_, rank_, threads_, op);
    const ProgramFrame& frame = *fresh;
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

  const ProgramPlan plan_;
  const int rank_, threads_;
  const bool flushes_;
  std::atomic<Link*> frames_{nullptr};
};
}  // namespace

std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, const plugrad_program& block,
                                            const ProgramSettings& settings) {
  const Program program(block);
  std::optional<ProgramPlan> plan = plan_of(program, settings.rows, settings.vector_bytes);
  if (!plan) return nullptr;
  return std::make_unique<TiledProgram>(device, std::move(*plan), program.rank(), settings);
}

}  // namespace plugrad::cpu
