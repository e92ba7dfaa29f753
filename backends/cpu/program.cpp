#include <backends/cpu/program.hpp>

#include <backends/cpu/machine.hpp>
#include <backends/cpu/program_frame.hpp>

#include <algorithm>

namespace plugrad::cpu {
namespace {
constexpr size_t kFrames = 16;  // of as many shapes

bool is_steady(const plugrad_view& exponent) {
  if (!is_immediate(exponent)) return false;
  const double y = immediate<double>(exponent);
  return y == 2 || y == 1 || y == 3 || y == -1 || y == 0.5;
}

class TiledProgram final : public ProgramKernel {
 public:
  TiledProgram(OpenDevice& device, ProgramPlan plan, int rank, int threads, bool flushes)
      : ProgramKernel(device, run_kernel<run>, workspace_of), plan_(std::move(plan)), rank_(rank), threads_(threads),
        flushes_(flushes) {}

 private:
  static TiledProgram& of(const plugrad_kernel* kernel) {
    return const_cast<TiledProgram&>(*static_cast<const TiledProgram*>(kernel));
  }

  static uint64_t workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
    try {
      const std::shared_ptr<const ProgramFrame> frame = of(kernel).frame_for(*op);
      return frame->serves() ? frame->workspace() : 0;
    } catch (const std::bad_alloc&) {
      return UINT64_MAX;
    }
  }

  static void run(const Call& call) {
    TiledProgram& self = of(call.kernel());
    const plugrad_op& op = call.op();
    const std::shared_ptr<const ProgramFrame> frame = self.frame_for(op);
    if (!frame->serves()) throw BackendError(PLUGRAD_UNSUPPORTED, "a program of these shapes");
    for (const SteadyExponent& each : self.plan_.exponents)
      if (!is_steady(call.in(each.input))) throw BackendError(PLUGRAD_UNSUPPORTED, "a program with POW of this exponent");
    if (!self.flushes_) return frame->run(op);
    const uint32_t mode = float_mode();
    set_float_mode(flushing(mode));
    frame->run(op);
    set_float_mode(mode);
  }

  std::shared_ptr<const ProgramFrame> frame_for(const plugrad_op& op) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < frames_.size(); ++i)
      if (frames_[i]->is_for(op)) return frames_[i];
    if (frames_.size() == kFrames) frames_.erase(frames_.begin());
    frames_.push_back(std::make_shared<const ProgramFrame>(plan_, rank_, threads_, op));
    return frames_.back();
  }

  const ProgramPlan plan_;
  const int rank_, threads_;
  const bool flushes_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const ProgramFrame>> frames_;
};
}  // namespace

const plugrad_kernel* ProgramKernels::find(OpenDevice& device, const plugrad_program& block) {
  const Program program(block);
  std::optional<ProgramPlan> plan = plan_of(program, rows_, vector_bytes_);
  if (!plan) return nullptr;
  auto made = std::make_unique<TiledProgram>(device, std::move(*plan), program.rank(), threads_, flushes_);
  const std::lock_guard lock(mutex_);
  kernels_.push_back(std::move(made));
  return kernels_.back().get();
}

}  // namespace plugrad::cpu
