#include <backends/reference/fusion.hpp>

#include <map>

namespace plugrad::reference {
namespace {

constexpr uint64_t kAlignment = 64;
uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class PlainFusion final : public FusionKernel {
 public:
  PlainFusion(OpenDevice& device, const plugrad_fusion& fusion)
      : FusionKernel(device, run_kernel<run>, workspace_of), kept_(fusion) {
    size_t made = fusion.inputs;
    for (const plugrad_fusion_instruction& each : this->fusion().instructions()) {
      plugrad_signature signature = this->fusion().signature_of(each, made);
      if (&each == this->fusion().head()) signature.layout = PLUGRAD_STRIDED | PLUGRAD_BROADCAST | PLUGRAD_UNALIGNED;
      if (each.opcode == PLUGRAD_OP_ATTENTION) signature.layout |= PLUGRAD_IMMEDIATE;  // the mask
      kernels_.push_back(kernel_for(signature));
      made += each.results;
    }
  }

  bool is_complete() const { return std::find(kernels_.begin(), kernels_.end(), nullptr) == kernels_.end(); }

 private:
  Fusion fusion() const { return kept_.fusion(); }
  const plugrad_kernel* kernel_for(const plugrad_signature& signature) const {
    return resolve_row(reinterpret_cast<plugrad_device*>(device), &signature);
  }

  // One run of the fusion: the places of its values.
  class Run;
  static const PlainFusion& of(const plugrad_kernel* kernel) { return *static_cast<const PlainFusion*>(kernel); }
  static uint64_t workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept;
  static void run(const Call& call);

  KeptFusion kept_;
  std::vector<const plugrad_kernel*> kernels_;  // of the instructions
};

class PlainFusion::Run {
 public:
  Run(const PlainFusion& of, const plugrad_op& op) : kernel_(of), fusion_(of.fusion()), op_(op) {
    space_ = space_of(fusion_, op);
    for (size_t i = 0; i < fusion_.inputs(); ++i) values_.push_back(*op.views[op.outputs + i]);
    is_placed_.resize(fusion_.values().size());
    for (size_t i = fusion_.inputs(); i < fusion_.values().size(); ++i) {
      values_.push_back(in_domain({}, fusion_.values()[i].axes, 0));
      values_.back().dtype = fusion_.values()[i].dtype;
      values_.back().buffer = op.workspace;
    }
    for (uint16_t k = 0; k < op.outputs; ++k) {
      const plugrad_fusion_output& output = fusion_.outputs()[k];
      if (is_placed_[output.value] || !may_write_early(output)) continue;
      values_[output.value] = *op.views[k];
      is_placed_[output.value] = true;
    }
    place_values();
  }

  uint64_t bytes() {
    uint64_t most = 0;
    for_each_op([&](const plugrad_kernel* kernel, const plugrad_op& op) {
      if (kernel->workspace) most = std::max(most, kernel->workspace(kernel, &op));
    });
    return most == UINT64_MAX ? most : bytes_ + most;
  }

  void run() {
    is_running_ = true;
    for_each_op([&](const plugrad_kernel* kernel, plugrad_op& op) {
      op.workspace = op_.workspace;
      op.workspace_offset = op_.workspace_offset + bytes_;
      call(kernel, op);
    });
    for (uint16_t i = 0; i < op_.outputs; ++i) copy(*op_.views[i], values_[fusion_.outputs()[i].value]);
  }

 private:
  // Whether the output may replace an input as soon as its instruction has run: no later instruction reads the input, and if
  // the instruction is an update, it does not read the input for another result.
  bool may_write_early(const plugrad_fusion_output& output) const {
    bool is_made = false;
    size_t made = fusion_.inputs();
    for (const plugrad_fusion_instruction& i : fusion_.instructions()) {
      const auto arguments = fusion_.arguments_of(i);
      const bool makes = output.value >= made && output.value < made + i.results;
      const bool updates = op_info(i.opcode)->shape == OpShape::update;
      for (size_t k = 0; k < arguments.size(); ++k) {
        const bool is_other = makes && updates && k != output.value - made;
        if (arguments[k] == output.over && (is_made || is_other)) return false;
      }
      is_made = is_made || makes;
      made += i.results;
    }
    return true;
  }

  // Places a value in the memory of a value of equal size that no later instruction reads: an argument of the value's own
  // instruction, or an earlier value. Without such a value, takes new memory.
  void place_values() {
    std::vector<size_t> last(values_.size());
    const auto instructions = fusion_.instructions();
    for (size_t i = 0; i < instructions.size(); ++i)
      for (const uint16_t argument : fusion_.arguments_of(instructions[i])) last[argument] = i;
    for (const plugrad_fusion_output& each : fusion_.outputs()) last[each.value] = instructions.size();
    std::multimap<uint64_t, uint64_t> free;  // offsets by size
    const auto size_of = [&](size_t value) {
      return aligned(static_cast<uint64_t>(values_[value].count) * element_size(values_[value].dtype));
    };
    size_t made = fusion_.inputs();
    for (size_t i = 0; i < instructions.size(); ++i) {
      for (size_t end = made + instructions[i].results; made < end; ++made) {
        if (is_placed_[made]) continue;
        if (const size_t over = ending_argument(instructions[i], made, i, last)) {
          values_[made].offset = values_[over].offset;
          last[over] = instructions.size();
          continue;
        }
        const auto found = free.find(size_of(made));
        values_[made].offset = op_.workspace_offset + (found == free.end() ? bytes_ : found->second);
        if (found == free.end()) bytes_ += size_of(made);
        else free.erase(found);
      }
      for (size_t value = fusion_.inputs(); value < made; ++value)
        if (last[value] == i && !is_placed_[value])
          free.emplace(size_of(value), values_[value].offset - op_.workspace_offset);
    }
  }

  // Returns an argument that the instruction reads last and whose elements the result may replace, or 0.
  size_t ending_argument(const plugrad_fusion_instruction& i, size_t made, size_t at,
                         const std::vector<size_t>& last) const {
    for (const uint16_t argument : fusion_.arguments_of(i)) {
      const plugrad_fusion_value &a = fusion_.values()[argument], &b = fusion_.values()[made];
      const bool is_inner = argument >= fusion_.inputs() && !is_placed_[argument] && last[argument] == at;
      if (is_inner && op_info(i.opcode)->shape == OpShape::elementwise && a.dtype == b.dtype && a.axes == b.axes)
        return argument;
    }
    return 0;
  }

  // Returns the value with the extents of the space, except for extent 1 along `axes`. The value itself has extent 1 along
  // `its`.
  plugrad_view in_domain(plugrad_view value, unsigned axes, unsigned its) const {
    const bool is_new = value.rank == 0;
    value.rank = static_cast<uint8_t>(fusion_.rank());
    value.count = 1;
    value.layout = 0;
    for (int d = value.rank; d-- > 0;) {
      value.shape[d] = axes >> d & 1 ? 1 : space_[d];
      if (is_new) value.strides[d] = value.count;
      if (its >> d & 1) value.strides[d] = 0;
      if (value.shape[d] > 1 && value.strides[d] != value.count) value.layout |= PLUGRAD_STRIDED;
      if (value.shape[d] > 1 && value.strides[d] == 0) value.layout |= PLUGRAD_BROADCAST;
      value.count *= value.shape[d];
    }
    return value;
  }

  // Returns the operands of an instruction, for its op. The values of its results begin with number `made`.
  std::vector<plugrad_view> views_of(const plugrad_fusion_instruction& i, size_t made) const {
    std::vector<plugrad_view> views(values_.begin() + made, values_.begin() + made + i.results);
    if (&i == fusion_.head()) {
      views[0] = head_result(fusion_, op_);
      views[0].buffer = values_[made].buffer;
      views[0].offset = values_[made].offset;
      views.insert(views.end(), values_.begin(), values_.begin() + fusion_.head_inputs());
      return views;
    }
    const OpInfo& info = *op_info(i.opcode);
    const auto inputs = fusion_.inputs_of(i);
    const unsigned axes = fusion_.values()[info.shape == OpShape::reduction ? inputs[0] : made].axes;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const bool is_number = info.shape == OpShape::update && k > 0;
      const plugrad_view& value = values_[inputs[k]];
      const unsigned its = fusion_.values()[inputs[k]].axes;
      views.push_back(is_immediate(value) ? value : in_domain(value, is_number ? fusion_.all_axes() : axes, its));
    }
    return views;
  }

  // Calls f(kernel, op) for the op of each instruction.
  template <class F> void for_each_op(const F& f) {
    size_t made = fusion_.inputs(), at = 0;
    for (const plugrad_fusion_instruction& i : fusion_.instructions()) {
      const std::vector<plugrad_view> views = views_of(i, made);
      const bool updates = op_info(i.opcode)->shape == OpShape::update;
      for (size_t k = 0; updates && k < i.results && is_running_; ++k)
        copy(views[k], in_domain(values_[fusion_.arguments_of(i)[k]], 0, 0));  // unless the value is already there
      std::vector<const plugrad_view*> pointers;
      for (const plugrad_view& each : views) pointers.push_back(&each);
      plugrad_op op{sizeof(plugrad_op),
                    i.opcode,
                    0,
                    pointers.data(),
                    fusion_.attributes_of(i),
                    i.results,
                    static_cast<uint16_t>(views.size() - i.results),
                    op_.flags & ~uint32_t{PLUGRAD_ACCUMULATE},
                    nullptr,
                    0,
                    0};
      f(kernel_.kernels_[at++], op);
      made += i.results;
    }
  }

  void copy(const plugrad_view& to, const plugrad_view& from) const {
    if (to.buffer == from.buffer && to.offset == from.offset) return;
    const plugrad_view* const views[] = {&to, &from};
    plugrad_signature signature{sizeof signature, PLUGRAD_OP_COPY, 0, 0, 1, 1, {to.dtype, from.dtype}, nullptr};
    const plugrad_op op{sizeof op, PLUGRAD_OP_COPY, 0, views, nullptr, 1, 1, 0, nullptr, 0, 0};
    call(kernel_.kernel_for(signature), op);
  }

  static void call(const plugrad_kernel* kernel, const plugrad_op& op) {
    if (const plugrad_status status = kernel->run(kernel, nullptr, &op))
      throw BackendError(status, std::string("an instruction of a fusion, ") + op_info(op.opcode)->name);
  }

  const PlainFusion& kernel_;
  const Fusion fusion_;
  const plugrad_op& op_;
  std::array<int64_t, PLUGRAD_MAX_RANK> space_;
  std::vector<plugrad_view> values_;
  std::vector<bool> is_placed_;  // by value: in an output's memory
  uint64_t bytes_ = 0;
  bool is_running_ = false;
};

uint64_t PlainFusion::workspace_of(const plugrad_kernel* kernel, const plugrad_op* op) noexcept {
  try {
    return Run(of(kernel), *op).bytes();
  } catch (const std::bad_alloc&) {
    return UINT64_MAX;
  }
}

void PlainFusion::run(const Call& call) { Run(of(call.kernel()), call.op()).run(); }

}  // namespace

std::unique_ptr<FusionKernel> make_fusion(OpenDevice& device, const plugrad_fusion& fusion) {
  auto made = std::make_unique<PlainFusion>(device, fusion);
  if (!made->is_complete()) return nullptr;
  return made;
}

}  // namespace plugrad::reference
