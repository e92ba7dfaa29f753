#include <plugrad/backends/cpu.hpp>

#include <backends/cpu/far_rows.hpp>
#include <backends/cpu/forms.hpp>
#include <backends/cpu/fusion.hpp>
#include <backends/cpu/linalg.hpp>
#include <backends/cpu/machine.hpp>
#include <backends/cpu/operand.hpp>
#include <backends/cpu/product.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/supported_sets.hpp>

#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/forms.hpp>

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
  append_updates<target>(rows);
  append_reductions<target>(rows);
  append_softmax<target>(rows);
  append_softmax_backward<target>(rows);
  append_norms<target>(rows);
  append_channels<target>(rows);
  append_scans<target>(rows);
  append_fourier<target>(rows);
  append_selection<target>(rows);
  append_random<target>(rows);
  append_matmul<target>(rows);
  append_quantized<target>(rows);
  append_convolutions<target>(rows);
  append_pooling<target>(rows);
  append_attention<target>(rows);
  append_indexing(rows);
  append_sorting(rows);
}

#if defined(__x86_64__)
void append_all_and_bytes(RowList& rows) {
  append_byte_products(rows);
  append_all<HWY_AVX3>(rows);
}
void append_all_and_pairs(RowList& rows) {
  append_pair_products(rows);
  append_all_and_bytes(rows);
}
void append_all_and_tiles(RowList& rows) {
  append_tile_products(rows);
  append_all_and_bytes(rows);
}
#endif

struct InstructionSet {
  const char* name;
  int vector_bytes;  // for the machine code of fusions; 0: no code is made
  bool here;         // whether this processor and its operating system support it
  void (*append)(RowList&);
};

// Returns the sets, the widest first. `targets` is a bit set of Highway's targets.
template <int64_t targets> std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
#if defined(__x86_64__)
  const SupportedSets supported = supported_sets();
  if constexpr (targets & HWY_AVX3) {
    const bool pairs = supported.avx512 && multiplies_bf16_pairs();
    sets.push_back({"amx", 64, pairs && multiplies_bf16_tiles(), append_all_and_tiles});
    sets.push_back({"avx512_bf16", 64, pairs, append_all_and_pairs});
  }
  if constexpr (targets & HWY_AVX3) sets.push_back({"avx512", 64, supported.avx512, append_all_and_bytes});
  if constexpr (targets & HWY_AVX2) sets.push_back({"avx2", 32, supported.avx2, append_all<HWY_AVX2>});
  if constexpr (targets & HWY_SSE4) sets.push_back({"sse4", 0, supported.sse4, append_all<HWY_SSE4>});
#endif
  constexpr int64_t kNamed = HWY_AVX3 | HWY_AVX2 | HWY_SSE4;
  if constexpr (!(HWY_STATIC_TARGET & kNamed)) sets.push_back({"baseline", 0, true, append_all<HWY_STATIC_TARGET>});
  return sets;
}

// Returns the set named by the option, or without the option the widest supported set.
const InstructionSet& choose(const std::vector<InstructionSet>& sets, const char* wanted) {
  std::string names;
  for (const InstructionSet& set : sets) {
    if (!set.here) continue;
    if (!wanted || std::string_view(wanted) == set.name) return set;
    names += std::string(" ") + set.name;
  }
  if (names.empty())
    throw BackendError(PLUGRAD_UNSUPPORTED, std::string("this plugin was built for processors with ") + sets.back().name +
                                                ", which this one lacks: build it with -DPLUGRAD_CPU_SIMD=all");
  throw BackendError(PLUGRAD_INVALID, std::string("option simd='") + (wanted ? wanted : "") + "' is not one of" + names);
}

}  // namespace

class CpuBackend final : public Backend, public Fusions, public OperandForms {
 public:
  explicit CpuBackend(const Opening& opening) {
    const Options& options = opening.options;
    options.allow({"threads", "memory", "flush_to_zero", "simd"});
    threads_ = static_cast<int>(options.integer("threads", usable_threads(), 1, 1024));
    options.integer("memory", 0, 0, INT64_MAX);  // the host allocates, so it enforces this limit
    const auto sets = instruction_sets<HWY_TARGETS>();
    const InstructionSet& set = choose(sets, options.find("simd"));
    set.append(rows_);
    if (options.integer("flush_to_zero", 0, 0, 1)) flush_to_zero();
    vector_bytes_ = set.vector_bytes;
  }

  static const void* extension(std::string_view name) noexcept {
    constexpr uint32_t kContents =
        PLUGRAD_FUSION_REDUCTIONS | PLUGRAD_FUSION_ROWS | PLUGRAD_FUSION_UPDATES | PLUGRAD_FUSION_PRODUCTS;
    constexpr uint64_t kLeast = 4096, kLongestRow = 16384, kLeastHeaded = 1 << 20;  // smaller products stay in the caches
    if (name == PLUGRAD_FUSIONS) return &kFusions<CpuBackend, kContents, kLeast, kLongestRow, kLeastHeaded>;
    if (name == PLUGRAD_FORMS) return &kForms<CpuBackend, PLUGRAD_CHANNELS_LAST>;
    return name == PLUGRAD_LINALG ? linear_algebra() : nullptr;
  }
  const plugrad_kernel* fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) override {
    const bool flushes = !flushed_.empty();
    const FusionSettings settings{flushes ? flushed_ : rows_, threads_, vector_bytes_, flushes};
    std::unique_ptr<FusionKernel> made = make_fusion(device, fusion, settings);
    return made ? fusions_.keep(std::move(made)) : nullptr;
  }

  std::optional<OperandForm> find_form(const Call& call, uint32_t input) const override {
    const FormRows* const form = input == 1 && flushed_.empty() ? form_rows(call) : nullptr;
    if (!form || !form->pays(call)) return {};
    return OperandForm{&form->maker, &form->reader, form->bytes(call)};
  }

  int threads() const { return threads_; }
  int vector_bytes() const { return vector_bytes_; }

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

  Rows kernels() const override { return rows_; }

 private:
  static const FormRows* form_rows(const Call& call) {
    switch (call.op().opcode) {
      case PLUGRAD_OP_CONVOLUTION:
      case PLUGRAD_OP_CONVOLUTION_BIAS: return &call.own<FormRows>();
      case PLUGRAD_OP_MATMUL:
      case PLUGRAD_OP_MATMUL_ADD: return is_computed(call.out().dtype) ? call.own<FollowedProduct>().form : nullptr;
      default: return nullptr;
    }
  }
  // Halves have products of their own.
  static bool is_computed(uint8_t dtype) { return dtype == PLUGRAD_F32 || dtype == PLUGRAD_F64; }

  // Wraps every kernel: the wrapper sets the calling thread's mode and restores it; the pool's threads copy the mode.
  void flush_to_zero() {
    flushed_ = rows_;
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].run = run_flushing;
      rows_[i].own = &flushed_[i];
    }
  }
  static plugrad_status run_flushing(const plugrad_kernel* self, plugrad_stream* stream, const plugrad_op* op) noexcept {
    const auto& plain = Call(self, stream, op).own<KernelRow>();
    const uint32_t mode = float_mode();
    set_float_mode(flushing(mode));
    const plugrad_status status = plain.run(self, stream, op);
    set_float_mode(mode);
    return status;
  }

  int threads_;
  RowList rows_;
  RowList flushed_;  // with flush_to_zero: the wrapped rows
  int vector_bytes_ = 0;
  FusionKernels fusions_;
};

int threads_of(const Call& call) { return call.backend<CpuBackend>().threads(); }
int vector_bytes_of(const Call& call) { return call.backend<CpuBackend>().vector_bytes(); }

}  // namespace plugrad::cpu

PLUGRAD_EXPORT_BACKEND_AS(plugrad_cpu_backend, plugrad::cpu::CpuBackend, "cpu", "0.1.0", PLUGRAD_AS_DEFAULT)
