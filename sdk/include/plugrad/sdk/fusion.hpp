// The extension of fusion.h for authors of backends in C++: derive from Fusions as well, and override fusion_kernel.
//
//   class Npu final : public plugrad::Backend, public plugrad::Fusions {
//     static const void* extension(std::string_view name) noexcept {
//       return name == PLUGRAD_FUSIONS ? &kFusions<Npu, PLUGRAD_FUSION_REDUCTIONS, 4096> : nullptr;
//     }
#pragma once
#include <plugrad/sdk/fusion.h>
#include <plugrad/sdk/backend.hpp>
#include <plugrad/sdk/fusion_block.hpp>

#include <atomic>
#include <cstring>
#include <vector>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// A fusion's parts. It owns nothing: the block must outlive it.
class Fusion {
 public:
  explicit Fusion(const plugrad_fusion& block) : block_(&block) {}
  const plugrad_fusion& block() const { return *block_; }
  int rank() const { return block_->rank; }
  size_t inputs() const { return block_->inputs; }
  std::span<const plugrad_fusion_value> values() const {
    return {at<plugrad_fusion_value>(block_->values_at), block_->values};
  }
  std::span<const plugrad_fusion_instruction> instructions() const {
    return {at<plugrad_fusion_instruction>(block_->instructions_at), block_->instructions};
  }
  std::span<const plugrad_fusion_output> outputs() const {
    return {at<plugrad_fusion_output>(block_->outputs_at), block_->outputs};
  }
  std::span<const uint16_t> arguments_of(const plugrad_fusion_instruction& i) const {
    return {at<uint16_t>(block_->arguments_at) + i.first, i.arguments};
  }
  const void* attributes_of(const plugrad_fusion_instruction& i) const {
    return i.attributes ? at<char>(i.attributes) : nullptr;
  }
  // The signature of the instruction as an op of its own. The values of its results begin with number `first`.
  plugrad_signature signature_of(const plugrad_fusion_instruction& i, size_t first, uint32_t flags = 0) const {
    plugrad_signature s{};
    s.struct_size = sizeof s;
    s.opcode = i.opcode;
    s.flags = flags;
    s.outputs = i.results;
    uint8_t* dtype = s.dtypes;
    for (size_t k = 0; k < i.results; ++k) *dtype++ = values()[first + k].dtype;
    for (const uint16_t argument : inputs_of(i)) *dtype++ = values()[argument].dtype;
    s.inputs = static_cast<uint8_t>(dtype - s.dtypes - i.results);
    return s;
  }
  // The arguments without the old values of an update's outputs.
  std::span<const uint16_t> inputs_of(const plugrad_fusion_instruction& i) const {
    const OpInfo* const op = op_info(i.opcode);
    return arguments_of(i).subspan(op && op->shape == OpShape::update ? i.results : 0);
  }
  // Returns the head, or null.
  const plugrad_fusion_instruction* head() const {
    const plugrad_fusion_instruction& first = instructions()[0];
    return head_content(first.opcode) ? &first : nullptr;
  }
  // The first inputs, which belong to the head.
  size_t head_inputs() const { return head() ? head()->arguments : 0; }
  // Whether the value is a further result of the head.
  bool is_beside_space(uint16_t value) const { return head() && value > inputs() && value < inputs() + head()->results; }
  unsigned all_axes() const { return (1u << block_->rank) - 1; }

 private:
  template <class T> const T* at(uint32_t offset) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(block_) + offset);
  }
  const plugrad_fusion* block_;
};

// A copy of a fusion, for its kernel.
class KeptFusion {
 public:
  explicit KeptFusion(const plugrad_fusion& fusion)
      : block_(reinterpret_cast<const uint64_t*>(&fusion),
               reinterpret_cast<const uint64_t*>(&fusion) + fusion.struct_size / sizeof(uint64_t)) {}
  Fusion fusion() const { return Fusion(*reinterpret_cast<const plugrad_fusion*>(block_.data())); }

 private:
  std::vector<uint64_t> block_;
};

// --- Checks, for tests and devices that check their host.

namespace detail {
inline std::string flaw_of_form(const plugrad_fusion& p) {
  const auto holds = [&](uint32_t at, size_t bytes) { return at >= sizeof p && at + bytes <= p.struct_size && at % 2 == 0; };
  if (p.struct_size < sizeof p || p.struct_size > 1 << 20) return "its size is " + std::to_string(p.struct_size);
  if (!p.rank || p.rank > PLUGRAD_MAX_RANK) return "its rank is " + std::to_string(p.rank);
  if (!p.outputs || p.inputs + p.outputs > PLUGRAD_FUSION_OPERANDS) return "it has too few or too many operands";
  if (!p.instructions || p.instructions > PLUGRAD_FUSION_INSTRUCTIONS) return "it has too few or too many instructions";
  if (!holds(p.values_at, p.values * sizeof(plugrad_fusion_value)) ||
      !holds(p.arguments_at, p.arguments * sizeof(uint16_t)) ||
      !holds(p.instructions_at, p.instructions * sizeof(plugrad_fusion_instruction)) ||
      !holds(p.outputs_at, p.outputs * sizeof(plugrad_fusion_output)))
    return "an array lies outside of its block";
  return {};
}

inline std::string flaw_of_dtypes(const Fusion& p, const plugrad_fusion_instruction& i, const OpInfo& op, size_t first) {
  const plugrad_signature s = p.signature_of(i, first);
  if (i.results != op.outputs || s.inputs != op.inputs) return "has another number of operands";
  const std::string_view letters = op.operands;
  const size_t key = letters.find_last_not_of("IBDW");
  const uint8_t dtype = s.dtypes[letters[key] == 'A' ? op.outputs : key];
  if (!op.is_for(dtype)) return "is not for its dtype";
  for (int k = 0; k < op.operand_count(); ++k) {
    const uint8_t expected = op.operand_dtype(k, dtype);
    if (expected && expected != s.dtypes[k]) return "has an operand of another dtype";
  }
  return {};
}

inline std::string flaw_of_head(const Fusion& p, const plugrad_fusion_instruction& i) {
  const auto arguments = p.arguments_of(i);
  if (arguments.size() > p.inputs()) return "has arguments that are not inputs";
  for (size_t k = 0; k < arguments.size(); ++k)
    if (arguments[k] != k || p.values()[k].axes) return "has arguments that are not the first inputs";
  for (size_t k = 0; k < i.results; ++k)
    if (p.values()[p.inputs() + k].axes) return "has a result with axes";
  for (size_t value = p.inputs() + 1; value < p.inputs() + i.results; ++value)
    if (std::none_of(p.outputs().begin(), p.outputs().end(), [&](const auto& each) { return each.value == value; }))
      return "has a further result that is not an output";
  return {};
}

// A line behind a head.
inline std::string flaw_behind_head(const Fusion& p, const plugrad_fusion_instruction& i, const OpInfo& op) {
  if (op.shape != OpShape::elementwise && op.shape != OpShape::copy) return "is not for a fusion with a head";
  for (const uint16_t argument : p.arguments_of(i))
    if (argument < p.head_inputs() || p.is_beside_space(argument)) return "reads an operand of the head";
  return {};
}

inline std::string flaw_of_axes(const Fusion& p, const plugrad_fusion_instruction& i, const OpInfo& op, size_t first) {
  const unsigned axes = p.values()[first].axes;
  const auto arguments = p.arguments_of(i);
  for (size_t k = 0; k < arguments.size(); ++k) {
    const unsigned its = p.values()[arguments[k]].axes;
    const bool is_number = op.shape == OpShape::update && k > i.results;
    if (is_number && its != p.all_axes()) return "has a number that is not one";
    if (op.shape == OpShape::reduction && (its & ~axes || its == axes)) return "reduces nothing";
    if (op.shape == OpShape::update && k < i.results && its) return "changes a value that is repeated";
    if (op.shape != OpShape::reduction && axes & ~its) return "has an argument that is larger than its result";
  }
  return {};
}
}  // namespace detail

// Returns a description of the first flaw of a fusion, or "".
inline std::string flaw_of(const plugrad_fusion& block) {
  if (std::string flaw = detail::flaw_of_form(block); !flaw.empty()) return flaw;
  const Fusion p(block);
  size_t made = p.inputs();
  for (const plugrad_fusion_instruction& i : p.instructions()) {
    const OpInfo* const op = op_info(i.opcode);
    const auto fail = [&](const std::string& why) { return (op ? op->name : "an unknown op") + (" " + why); };
    if (!op) return fail("is not an instruction");
    const bool computes = op->works_in_place() || op->opcode == PLUGRAD_OP_FILL;
    const bool reduces = op->shape == OpShape::reduction && op->opcode != PLUGRAD_OP_ARGMAX;
    const bool is_head = &i == p.head();
    if (!computes && !reduces && !is_head) return fail("is not an instruction");
    if (i.first + i.arguments > block.arguments || made + i.results > block.values)
      return fail("has operands without place");
    for (const uint16_t argument : p.arguments_of(i))
      if (argument >= made) return fail("reads a value before it is made");
    if (std::string flaw = detail::flaw_of_dtypes(p, i, *op, made); !flaw.empty()) return fail(flaw);
    std::string flaw = is_head ? detail::flaw_of_head(p, i) : p.head() ? detail::flaw_behind_head(p, i, *op) : std::string();
    if (flaw.empty() && !is_head) flaw = detail::flaw_of_axes(p, i, *op, made);
    if (!flaw.empty()) return fail(flaw);
    made += i.results;
  }
  if (made != block.values) return "it has values that nothing makes";
  for (const plugrad_fusion_output& each : p.outputs())
    if (each.value < p.inputs() || each.value >= made || (each.over != PLUGRAD_FUSION_NONE && each.over >= p.inputs()))
      return "an output has no value";
  return {};
}

// Returns the extents of the space, from the operands of a call.
inline std::array<int64_t, PLUGRAD_MAX_RANK> space_of(const plugrad_op& op, int rank) {
  std::array<int64_t, PLUGRAD_MAX_RANK> extents;
  extents.fill(1);
  for (int k = 0; k < op.outputs + op.inputs; ++k)
    for (int d = 0; d < rank && !is_immediate(*op.views[k]); ++d) extents[d] = std::max(extents[d], op.views[k]->shape[d]);
  return extents;
}
// The same for the operands of a fusion's call.
inline std::array<int64_t, PLUGRAD_MAX_RANK> space_of(const Fusion& p, const plugrad_op& op) {
  if (!p.head()) return space_of(op, p.rank());
  const auto is_inside = [&](const plugrad_fusion_output& each) { return !p.is_beside_space(each.value); };
  const auto first = std::find_if(p.outputs().begin(), p.outputs().end(), is_inside);  // it has the whole space
  std::array<int64_t, PLUGRAD_MAX_RANK> extents;
  extents.fill(1);
  if (first != p.outputs().end()) std::copy_n(op.views[first - p.outputs().begin()]->shape, p.rank(), extents.begin());
  return extents;
}

// Returns the first result of a fusion's head as the head's op demands it: dense, without memory.
inline plugrad_view head_result(const Fusion& p, const plugrad_op& op) {
  const auto input = [&](int k) -> const plugrad_view& { return *op.views[op.outputs + k]; };
  plugrad_view v = input(0);
  const int last = v.rank - 1;
  const uint32_t content = head_content(p.head()->opcode);
  if (content == PLUGRAD_FUSION_PRODUCTS) v.shape[last] = input(1).shape[last];
  if (content == PLUGRAD_FUSION_ATTENTION) v.shape[last] = input(2).shape[last];
  v.count = 1;
  v.layout = 0;
  v.buffer = nullptr;
  v.offset = 0;
  for (int d = v.rank; d-- > 0; v.count *= v.shape[d]) v.strides[d] = v.count;
  return v;
}

// Returns the call of a product as the head of a fusion's call. result: the head's result. views: room for all operands of
// the head; the call refers to it. The workspace is the fusion's.
inline plugrad_op head_op(const Fusion& p, const plugrad_op& op, const plugrad_view& result, const plugrad_view** views) {
  views[0] = &result;
  std::copy_n(op.views + op.outputs, p.head_inputs(), views + 1);
  plugrad_op head = op;
  head.opcode = p.head()->opcode;
  head.views = views;
  head.attributes = p.attributes_of(*p.head());
  head.outputs = 1;
  head.inputs = static_cast<uint16_t>(p.head_inputs());
  return head;
}

// Returns a description of the first flaw of a call's operands, or "". The call's fusion itself has no flaws.
inline std::string flaw_of(const Fusion& p, const plugrad_op& op) {
  if (op.outputs != p.outputs().size() || op.inputs != p.inputs()) return "the number of operands differs";
  const auto space = space_of(p, op);
  for (int k = 0; k < op.outputs + op.inputs; ++k) {
    const bool is_output = k < op.outputs;
    const plugrad_view& v = *op.views[k];
    const auto number = static_cast<uint16_t>(is_output ? p.outputs()[k].value : k - op.outputs);
    const std::string which = (is_output ? "output " : "input ") + std::to_string(is_output ? k : k - op.outputs);
    const plugrad_fusion_value& value = p.values()[number];
    if (v.dtype != value.dtype) return which + " has another dtype than its value";
    if (is_output ? p.is_beside_space(number) : number < p.head_inputs()) continue;
    if (is_immediate(v)) {
      if (is_output || value.axes != p.all_axes()) return which + " is a number";
      continue;
    }
    if (v.rank != p.rank()) return which + " has another rank than the fusion";
    for (int d = 0; d < v.rank; ++d) {
      const bool repeats = value.axes >> d & 1;
      if (v.shape[d] != (is_output && repeats ? 1 : space[d])) return which + " does not fit the space";
      if (is_output) continue;
      if (repeats != !v.strides[d]) return which + " repeats along other axes than its value";
      if (v.strides[d] < 0 || (d + 1 == v.rank && v.strides[d] > 1)) return which + " has strides of no input";
    }
    if (!is_output) continue;
    if (v.layout & PLUGRAD_STRIDED) return which + " is not dense";
    const uint16_t over = p.outputs()[k].over;
    if (over == PLUGRAD_FUSION_NONE) continue;
    const plugrad_view& in = *op.views[op.outputs + over];
    bool is_equal = in.buffer == v.buffer && in.offset == v.offset && p.values()[over].axes == value.axes;
    for (int d = 0; d < v.rank; ++d) is_equal = is_equal && (value.axes >> d & 1 || in.strides[d] == v.strides[d]);
    if (!is_equal) return which + " lies over an input with other elements";
  }
  return {};
}

// --- Offering the extension.

// The kernel of a fusion. The backend owns the kernel as long as the backend lives.
struct FusionKernel : BoundKernel {
  FusionKernel(OpenDevice& of, RunFunction run_function, WorkspaceFunction workspace_function)
      : BoundKernel{{sizeof(plugrad_kernel), 0, run_function, workspace_function}, &of, nullptr} {}
  virtual ~FusionKernel() = default;
  FusionKernel(const FusionKernel&) = delete;
  FusionKernel& operator=(const FusionKernel&) = delete;
};

// Owns kernels. Takes no lock, so a forked child can go on.
class FusionKernels {
 public:
  FusionKernels() = default;
  FusionKernels(const FusionKernels&) = delete;
  FusionKernels& operator=(const FusionKernels&) = delete;
  ~FusionKernels() {
    for (Link* each = first_; each;) delete std::exchange(each, each->next);
  }
  const plugrad_kernel* keep(std::unique_ptr<FusionKernel> kernel) {
    Link* const link = new Link{std::move(kernel), first_};
    while (!first_.compare_exchange_weak(link->next, link)) {
    }
    return link->kernel.get();
  }

 private:
  struct Link {
    std::unique_ptr<FusionKernel> kernel;
    Link* next;
  };
  std::atomic<Link*> first_{nullptr};
};

class Fusions {
 public:
  virtual ~Fusions() = default;
  // Returns the fusion's kernel, or null. May throw std::bad_alloc. Called by several threads at a time.
  virtual const plugrad_kernel* fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) = 0;
  // Returns how many of the first instructions of a fusion with a head the device takes. Called as fusion_kernel.
  virtual uint32_t fusion_reach(const plugrad_fusion& fusion) { return fusion.instructions; }
};

template <class B> uint32_t reach_of_fusion(plugrad_device* handle, const plugrad_fusion* fusion) noexcept {
  try {
    return static_cast<Fusions&>(static_cast<B&>(*OpenDevice::of(handle).backend)).fusion_reach(*fusion);
  } catch (...) {
    return 0;
  }
}

template <class B> const plugrad_kernel* kernel_of_fusion(plugrad_device* handle, const plugrad_fusion* fusion) noexcept {
  OpenDevice& device = OpenDevice::of(handle);
  try {
    return static_cast<Fusions&>(static_cast<B&>(*device.backend)).fusion_kernel(device, *fusion);
  } catch (...) {
    return nullptr;
  }
}

template <class B, uint32_t contents, uint64_t least, uint64_t longest_row = 0, uint64_t least_headed = least>
inline constexpr plugrad_fusions kFusions{sizeof(plugrad_fusions), contents,           least,       longest_row,
                                          kernel_of_fusion<B>,     reach_of_fusion<B>, least_headed};

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
