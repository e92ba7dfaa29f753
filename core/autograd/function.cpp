#include <plugrad/autograd/function.hpp>

#include <core/autograd/call.hpp>
#include <core/autograd/rule.hpp>
#include <core/autograd/sum.hpp>
#include <plugrad/autograd/autograd.hpp>

#include <algorithm>
#include <functional>

namespace plugrad {
namespace {
constexpr int kNoResult = -1;

struct SavedTensor {
  Tensor value;    // a result is kept outside the graph, so that the call does not own itself
  Ref<Node> node;  // unset for results
  int result = kNoResult;
  uint32_t version = 0;
};

// The form that a gradient must fit.
struct Form {
  explicit Form(const Tensor& x) : view(view_of(x)), device(&device_of(x)) {}
  plugrad_view view;  // its buffer is not used
  DeviceState* device;
  std::string text() const {
    return "shape " + shape_of(view).text() + ", " + dtype_label(view.dtype) + ", " + device->name;
  }
};
}  // namespace

// The state of a call.
struct FunctionState {
  std::string name;
  Rule rule{};
  std::vector<bool> needs;  // by input
  std::vector<Form> inputs, results;
  std::vector<SavedTensor> saved;
  std::vector<Tensor> constants;  // results without a gradient, while forward runs
  bool materialize = true, used = false;
  // While backward runs.
  Node* call = nullptr;
  const std::vector<CallPart>* parts = nullptr;

  void begin(const Function& function, const std::vector<Tensor>& given);
  std::vector<Tensor> record(const std::shared_ptr<Function>& function, const std::vector<Tensor>& given,
                             const std::vector<Tensor>& made);
  void keep_saved(const std::vector<Tensor>& given, const std::vector<Tensor>& made);
  [[noreturn]] void refuse(const std::string& why) const { throw Error(Code::invalid, "[" + name + "] " + why); }
  std::vector<Tensor> run_backward(Node& node, const std::vector<CallPart>& all, const std::vector<Tensor>& grads);
  Tensor unpacked(const SavedTensor& saved) const;
  Tensor fitted(const Tensor& gradient, size_t input) const;
  static FunctionState& of(const Node& call);
  static Function& function_of(const Node& call) {
    return *static_cast<const PayloadOf<std::shared_ptr<Function>>&>(*call.payload).value;
  }
};

FunctionState& FunctionState::of(const Node& call) { return *function_of(call).state_; }

Function::Function() : state_(std::make_unique<FunctionState>()) {}
Function::~Function() = default;

void Function::save_for_backward(std::vector<Tensor> tensors) {
  state_->saved.clear();
  for (Tensor& each : tensors) {
    const uint32_t version = each.defined() ? storage_of(each)->version : 0;
    state_->saved.push_back({std::move(each), {}, kNoResult, version});
  }
}
bool Function::needs_input_grad(size_t input) const { return input < state_->needs.size() && state_->needs[input]; }
void Function::mark_non_differentiable(const std::vector<Tensor>& results) { state_->constants = results; }
void Function::set_materialize_grads(bool on) { state_->materialize = on; }

std::vector<Tensor> Function::saved_tensors() const {
  std::vector<Tensor> all;
  for (const SavedTensor& each : state_->saved) all.push_back(state_->unpacked(each));
  return all;
}

// --- Forward.

void FunctionState::begin(const Function& function, const std::vector<Tensor>& given) {
  name = function.name();
  if (std::exchange(used, true)) refuse("this object served another call: make one for each");
  for (const Tensor& each : given) {
    require_defined(each, name.c_str());
    needs.push_back(each.requires_grad());
  }
}

namespace {
bool is_one_of(const std::vector<Tensor>& all, const Tensor& x) {
  return std::ranges::any_of(all, [&](const Tensor& each) { return each.is_same(x); });
}

Tensor with_part_node(const Tensor& x, Node& call, size_t index) {
  Tensor out = with_view(x, view_of(x));
  Ref<Node> node = new_node(view_of(x));
  node->rule = call.rule;
  node->operands = 1;
  node->next[0] = Ref<Node>::share(&call);
  node->flags |= Node::kPart;
  node->payload = make_payload(index);
  if (local().mode & kTransformedMode) note_transform(*node, out);
  out.impl().node = std::move(node);
  return out;
}
}  // namespace

// Results are kept as handles without a node.
void FunctionState::keep_saved(const std::vector<Tensor>& given, const std::vector<Tensor>& made) {
  for (SavedTensor& each : saved) {
    if (!each.value.defined()) continue;
    each.version = storage_of(each.value)->version;
    const auto found = std::ranges::find_if(made, [&](const Tensor& x) { return x.is_same(each.value); });
    if (found != made.end() && !is_one_of(given, each.value)) {
      each.result = static_cast<int>(found - made.begin());
      each.value = with_view(each.value, view_of(each.value));
    } else {
      each.node = each.value.impl().node;
    }
  }
}

std::vector<Tensor> FunctionState::record(const std::shared_ptr<Function>& function, const std::vector<Tensor>& given,
                                          const std::vector<Tensor>& made) {
  keep_saved(given, made);
  rule.name = name.c_str();
  for (const Tensor& each : given) inputs.emplace_back(each);
  std::vector<bool> wanted;
  for (const Tensor& each : made) {
    results.emplace_back(each);
    wanted.push_back(is_inexact(dtype_of(each)) && !is_one_of(constants, each));
  }
  constants.clear();
  std::vector<Tensor> out = made;
  if (std::ranges::none_of(wanted, std::identity())) return out;
  const Tensor first = with_view(made[0], view_of(made[0]));
  Node& call = record_all(rule, first, given);
  call.flags |= Node::kCall;
  call.payload = make_payload(function);
  if (made.size() == 1) return {first};
  for (size_t i = 0; i < made.size(); ++i)
    if (wanted[i]) out[i] = with_part_node(made[i], call, i);
  return out;
}

// By value, because forward() may drop the caller's pointer. NOLINTNEXTLINE(performance-unnecessary-value-param)
std::vector<Tensor> apply_function(std::shared_ptr<Function> function, const std::vector<Tensor>& inputs) {
  if (!function) throw Error(Code::invalid, "[apply_function] the function is null");
  FunctionState& state = *function->state_;
  state.begin(*function, inputs);
  std::vector<uint32_t> versions;
  for (const Tensor& each : inputs) versions.push_back(storage_of(each)->version);
  std::vector<Tensor> results;
  {
    const NoGrad unrecorded;
    results = function->forward(inputs);
  }
  if (results.empty()) state.refuse("forward returned nothing: return one tensor or more");
  for (const Tensor& each : results)
    if (!each.defined()) state.refuse("forward returned an undefined tensor");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (state.needs[i] && storage_of(inputs[i])->version != versions[i])
      state.refuse("forward wrote into input " + std::to_string(i) + ", which requires a gradient: write into a clone");
  const bool recorded = recording() && std::ranges::find(state.needs, true) != state.needs.end();
  if (recorded) return state.record(function, inputs, results);
  state.saved.clear();
  state.constants.clear();
  return results;
}

// --- Backward.

Tensor FunctionState::unpacked(const SavedTensor& each) const {
  if (!each.value.defined()) return {};
  if (storage_of(each.value)->version != each.version)
    refuse("a value that forward saved was changed in place (version " + std::to_string(each.version) + " then, " +
           std::to_string(storage_of(each.value)->version) + " now): clone it before the change");
  if (each.result == kNoResult || !recording() || !call) return each.value;
  const size_t index = static_cast<size_t>(each.result);
  Node* const part = part_count(*call) == 1 ? call : (*parts)[index].node;
  if (!part) return with_part_node(each.value, *call, index);
  Tensor out = with_view(each.value, view_of(each.value));
  out.impl().node = Ref<Node>::share(part);
  return out;
}

// Returns the gradient for the pass to add up: in the input's dtype, and in a shape that sums to the input's shape.
Tensor FunctionState::fitted(const Tensor& gradient, size_t input) const {
  const Form& form = inputs[input];
  const plugrad_view &from = form.view, &to = view_of(gradient);
  bool fits = &device_of(gradient) == form.device && from.rank <= to.rank;
  for (int i = 0; fits && i < from.rank; ++i)
    fits = from.shape[i] == 1 || from.shape[i] == to.shape[i + to.rank - from.rank];
  if (!fits)
    refuse("backward returned a gradient of " + description(gradient) + " for input " + std::to_string(input) + " of " +
           form.text() + ": the shapes must be equal, or the input's must broadcast to the gradient's");
  return converted(gradient, form.view.dtype);
}

std::vector<Tensor> FunctionState::run_backward(Node& node, const std::vector<CallPart>& all,
                                                const std::vector<Tensor>& grads) {
  struct Scope {
    ~Scope() { state.call = nullptr; }
    FunctionState& state;
  } const scope{*this};
  call = &node;
  parts = &all;
  return function_of(node).backward(grads);
}

size_t part_index(const Node& part) { return static_cast<const PayloadOf<size_t>&>(*part.payload).value; }
size_t part_count(const Node& call) { return FunctionState::of(call).results.size(); }

std::vector<Tensor> gradients_of_call(Node& call, const std::vector<CallPart>& parts) {
  FunctionState& state = FunctionState::of(call);
  std::vector<Tensor> grads;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool zero = !parts[i].sum.defined() && state.materialize;
    grads.push_back(zero ? filled_like(*state.results[i].device, state.results[i].view, 0) : parts[i].sum);
  }
  std::vector<Tensor> gradients = state.run_backward(call, parts, grads);
  if (gradients.size() != state.inputs.size())
    state.refuse("backward returned " + std::to_string(gradients.size()) + " gradients for " +
                 std::to_string(state.inputs.size()) + " inputs: return one for each, undefined where there is none");
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined() && state.needs[i]) gradients[i] = state.fitted(gradients[i], i);
  return gradients;
}

// --- Checkpoints.

Kept saved_of_call(const Node& call) {
  Kept kept;
  for (const SavedTensor& each : FunctionState::of(call).saved) {
    kept.values.push_back(each.value.defined() ? with_view(each.value, view_of(each.value)) : Tensor());
    kept.versions.push_back(each.version);
  }
  return kept;
}

bool drop_saved_of_call(Node& call) {
  bool any = false;
  for (SavedTensor& each : FunctionState::of(call).saved) any |= std::exchange(each.value, {}).defined();
  return any;
}

void give_saved_to_call(Node& call, const Kept& kept) {
  std::vector<SavedTensor>& saved = FunctionState::of(call).saved;
  for (size_t i = 0; i < saved.size(); ++i) {
    saved[i].value = kept.values[i];
    saved[i].version = kept.versions[i];
    if (saved[i].value.defined() && saved[i].result == kNoResult) saved[i].value.impl().node = saved[i].node;
  }
}

}  // namespace plugrad
