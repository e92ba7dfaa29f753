#include <backends/cuda/fusion.hpp>

#include <backends/cuda/elementwise.hpp>
#include <backends/cuda/fusion_compiler.hpp>
#include <backends/cuda/fusion_plan.hpp>
#include <backends/cuda/fusion_source.hpp>
#include <backends/cuda/narrowed.hpp>

#include <atomic>
#include <utility>

namespace plugrad::cuda {
#if CUDART_VERSION >= 13000  // older runtimes do not load kernels compiled at run time
namespace {

using Places = BoxOf<PLUGRAD_FUSION_OPERANDS>;
using WidestGrid = Grid<PLUGRAD_FUSION_OPERANDS>;

constexpr const char* kWhat = "a compiled fusion";  // in errors

class CompiledFusion final : public FusionKernel {
 public:
  CompiledFusion(OpenDevice& device, const FusionTools& tools, FusionSource source)
      : FusionKernel(device, run_kernel<run>, source.reductions ? workspace : nullptr), tools_(tools),
        source_(std::move(source)) {}

  // Loads code that was compiled before. Returns whether there is such code.
  bool load_kept();
  void compile();
  void give_up() { state_.store(State::failed, std::memory_order_release); }

 private:
  enum class State : uint8_t { compiling, failed, ready };

  static void run(const Call& call);
  static uint64_t workspace(const plugrad_kernel* kernel, const plugrad_op* op) noexcept;
  void load(const std::vector<char>& code);
  void keep(const std::vector<char>& code) const noexcept;
  void map(const Call& call) const;
  void map_part(const Submission& submission, const Places& part) const;
  void reduce(const Call& call) const;
  void launch(const Submission& submission, bool by_packs, unsigned blocks, void* argument) const;
  CudaBackend& backend() const { return static_cast<CudaBackend&>(*device->backend); }

  const FusionTools tools_;
  FusionSource source_;
  const void *packs_ = nullptr, *singles_ = nullptr;
  std::atomic<State> state_{State::compiling};
};

// The file may be damaged in a way that its digest does not show, so code that does not load is compiled anew.
bool CompiledFusion::load_kept() {
  try {
    const std::vector<char> code = tools_.codes.find(source_.text);
    if (code.empty()) return false;
    load(code);
  } catch (const std::exception&) {
    return false;
  }
  state_.store(State::ready, std::memory_order_release);
  return true;
}

void CompiledFusion::compile() {
  std::string why;
  try {
    const std::vector<char> code = tools_.nvrtc.compile(source_.text, tools_.architecture, why);
    if (!code.empty()) {
      load(code);
      state_.store(State::ready, std::memory_order_release);
      return keep(code);
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  backend().warn_of_fusions(why);
  state_.store(State::failed, std::memory_order_release);
}

// The fusion serves without its place on disk.
void CompiledFusion::keep(const std::vector<char>& code) const noexcept {
  try {
    tools_.codes.add(source_.text, code);
  } catch (const std::exception&) {
  }
}

void CompiledFusion::load(const std::vector<char>& code) {
  const CallScope scope(backend().index());
  cudaLibrary_t library = nullptr;
  backend().check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), kWhat);
  for (const auto& [into, name] : {std::pair(&packs_, "packs"), std::pair(&singles_, "singles")}) {
    cudaKernel_t kernel = nullptr;
    backend().check(cudaLibraryGetKernel(&kernel, library, name), kWhat);
    *into = kernel;
  }
}

void CompiledFusion::run(const Call& call) {
  const auto& self = *static_cast<const CompiledFusion*>(call.kernel());
  if (self.state_.load(std::memory_order_acquire) != State::ready)
    throw BackendError(PLUGRAD_UNSUPPORTED, "the fusion is not compiled");
  self.source_.reductions ? self.reduce(call) : self.map(call);
}

void CompiledFusion::map(const Call& call) const {
  const Submission submission(call);
  Places(call.op().views, call.op().outputs + call.op().inputs).cut(kSpan, [&](const Places& part) {
    map_part(submission, part);
  });
  submission.finish();
}

void CompiledFusion::map_part(const Submission& submission, const Places& part) const {
  const bool by_packs = has_packs(part, source_.pack);
  const WidestGrid wide = grid_of<PLUGRAD_FUSION_OPERANDS>(part, by_packs ? source_.pack : 1);
  Narrowed<WidestGrid> grid(part.operands);
  grid.add(wide.memories);
  grid.add(wide.count);
  grid.add(wide.tail);
  grid.add(wide.axes);
  const int tile = kBlock * (by_packs ? source_.packs_each : source_.singles_each);
  launch(submission, by_packs, map_blocks(wide.count, static_cast<uint32_t>(tile)), grid.bytes());
}

uint64_t CompiledFusion::workspace(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
  const auto& self = static_cast<const CompiledFusion&>(*kernel);
  return fusion_workspace(*op, self.source_, self.backend().multiprocessors());
}

void CompiledFusion::reduce(const Call& call) const {
  const plugrad_op& op = call.op();
  const FusionPlan plan(op, source_, backend().multiprocessors());
  const Submission submission(call);
  const auto& wide = plan.argument;
  Narrowed<FusionReduction<kFusionSlots>> argument(op.outputs + op.inputs + source_.reductions);
  argument.add(wide.memories);
  argument.add(wide.kept);
  argument.add(wide.reduced);
  argument.add(wide.segments);
  argument.add(call.workspace());
  argument.add(submission.stream().counters());
  launch(submission, plan.by_packs, plan.blocks, argument.bytes());
  submission.finish();
}

void CompiledFusion::launch(const Submission& submission, bool by_packs, unsigned blocks, void* argument) const {
  void* arguments[] = {argument};
  submission.backend().check(
      cudaLaunchKernel(by_packs ? packs_ : singles_, blocks, kBlock, arguments, 0, submission.handle()), kWhat);
}

}  // namespace

std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& fusion, const FusionTools& tools) {
  FusionSource source = source_of(fusion);
  if (source.text.empty()) return nullptr;
  return std::make_unique<CompiledFusion>(device, tools, std::move(source));
}

void compile_fusion(FusionKernel& kernel, Compiling when) {
  auto& fusion = static_cast<CompiledFusion&>(kernel);
  if (fusion.load_kept()) return;
  if (when == Compiling::at_once) {
    fusion.compile();
    return CodeCache::write_all();  // nobody says which fusion is the last
  }
  FusionCompiler::get().add([&fusion](bool may_compile) { may_compile ? fusion.compile() : fusion.give_up(); });
}
#else
std::unique_ptr<FusionKernel> make_fusion(OpenDevice&, const plugrad_fusion&, const FusionTools&) { return nullptr; }
void compile_fusion(FusionKernel&, Compiling) {}
#endif

}  // namespace plugrad::cuda
