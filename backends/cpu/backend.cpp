#include <plugrad/backends/cpu.hpp>

#include <backends/cpu/machine.hpp>
#include <backends/cpu/operand.hpp>
#include <backends/cpu/rows.hpp>

#include <plugrad/sdk/backend.hpp>

#include <hwy/highway.h>

#include <algorithm>
#include <iterator>

namespace plugrad::cpu {
namespace {

template <int64_t target> void append_all(RowList& rows) {
  append_arithmetic<target>(rows);
  append_functions<target>(rows);
  append_comparisons<target>(rows);
  append_casts<target>(rows);
  append_backward<target>(rows);
  append_updates<target>(rows);
  append_reductions<target>(rows);
  append_softmax<target>(rows);
  append_softmax_backward<target>(rows);
  append_random<target>(rows);
  append_matmul<target>(rows);
  append_indexing(rows);
}

struct InstructionSet {
  const char* name;
  bool here;  // whether this processor and its system have it
  void (*append)(RowList&);
};

// The widest first. Each number of the enclosing template is a bit set of Highway's.
template <int64_t targets> std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  if constexpr (targets & HWY_AVX3) sets.push_back({"avx512", avx512, append_all<HWY_AVX3>});
  if constexpr (targets & HWY_AVX2) sets.push_back({"avx2", avx2, append_all<HWY_AVX2>});
  if constexpr (targets & HWY_SSE4) sets.push_back({"sse4", sse4, append_all<HWY_SSE4>});
#endif
  constexpr int64_t kNamed = HWY_AVX3 | HWY_AVX2 | HWY_SSE4;
  if constexpr (!(HWY_STATIC_TARGET & kNamed)) sets.push_back({"baseline", true, append_all<HWY_STATIC_TARGET>});
  return sets;
}

// The widest set there is, or the one that the option names.
const InstructionSet& choose(const std::vector<InstructionSet>& sets, const char* wanted) {
  std::string names;
  for (const InstructionSet& set : sets) {
    if (!set.here) continue;
    if (!wanted || std::string_view(wanted) == set.name) return set;
    names += std::string(" ") + set.name;
  }
  throw BackendError(PLUGRAD_INVALID,
                     std::string("option simd='") + (wanted ? wanted : "") + "': one of" + names + " expected");
}

}  // namespace

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const Opening& opening) {
    const Options& options = opening.options;
    options.allow({"threads", "memory", "flush_to_zero", "simd"});
    threads_ = int(options.integer("threads", usable_threads(), 1, 1024));
    options.integer("memory", 0, 0, INT64_MAX);  // the host, which allocates, keeps to it
    const auto sets = instruction_sets<HWY_TARGETS>();
    RowList rows;
    choose(sets, options.find("simd")).append(rows);
    for (const KernelRow& row : rows) families_[int(op_info(row.opcode)->family)].push_back(row);
    if (options.integer("flush_to_zero", 0, 0, 1)) flush_to_zero();
  }

  int threads() const { return threads_; }

  plugrad_device_info info() const override {
    const char* const unit = threads_ == 1 ? " thread" : " threads";
    plugrad_device_info info = host_info(processor_name() + ", " + std::to_string(threads_) + unit);
    info.memory = installed_memory();
    return info;
  }
  void memory_info(uint64_t& free_bytes, uint64_t& total_bytes) override {
    free_bytes = available_memory();
    total_bytes = installed_memory();
  }

  Rows elementwise() const override { return of(Family::elementwise); }
  Rows reduce() const override { return of(Family::reduce); }
  Rows matmul() const override { return of(Family::matmul); }
  Rows indexing() const override { return of(Family::indexing); }
  Rows random() const override { return of(Family::random); }
  Rows backward() const override { return of(Family::backward); }
  Rows update() const override { return of(Family::update); }

 private:
  static constexpr int kFamilies = int(Family::update) + 1;

  Rows of(Family family) const { return families_[int(family)]; }

  // Every kernel behind one that changes the calling thread's mode and back; the pool's threads take the caller's.
  void flush_to_zero() {
    for (RowList& rows : families_)
      for (KernelRow& row : rows) plain_.push_back(std::exchange(row.run, run_flushing));
  }
  static plugrad_status run_flushing(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const auto* kernel = static_cast<const BoundKernel*>(self);
    const auto& backend = static_cast<const CpuBackend&>(*kernel->device->backend);
    const uint32_t mode = float_mode();
    set_float_mode(flushing(mode));
    const plugrad_status status = backend.plain_[kernel - kernel->device->kernels.data()](self, stream, op);
    set_float_mode(mode);
    return status;
  }

  int threads_;
  RowList families_[kFamilies];
  std::vector<RunFunction> plain_;  // in the order of the device's kernels: family after family
};

int threads_of(const Call& call) { return call.backend<CpuBackend>().threads(); }

}  // namespace plugrad::cpu

PLUGRAD_EXPORT_BACKEND_AS(plugrad_cpu_backend, plugrad::cpu::CpuBackend, "cpu", "0.1.0")
