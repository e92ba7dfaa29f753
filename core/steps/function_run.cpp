#include <core/steps/function_run.hpp>

#include <core/autograd/autocast.hpp>
#include <core/runtime/memory/import.hpp>
#include <core/steps/digest.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace plugrad {
namespace {
using Tensors = std::vector<Tensor>;

// --- The recorder. It also follows the gradients read or replaced by the step.

class StepCapture final : public steps::StepRecorder {
 public:
  StepCapture(const Tensors& arguments, bool digesting) : arguments_(arguments), digesting_(digesting) { start(); }
  ~StepCapture() override { stop(); }
  void touched(void* node) override;
  void run_part(observe::Part part) override;
  void ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
           Storage* workspace) override;
  void run_host(std::shared_ptr<observe::HostCall> call, DeviceState* device, const plugrad_op& op,
                Storage* const* storages) override;

  StepView view_of_step(const Tensor& x);
  // Returns the gradients that outlive the step, in their current state.
  std::vector<GradientPlace> finish_gradients();
  std::vector<std::vector<FoundGradient>> found;  // by part
  std::vector<uint64_t> digests;
  steps::HostResults host_results;

 private:
  const Tensors& arguments_;
  const bool digesting_;
  std::vector<GradientPlace> gradients_;
};

StepView StepCapture::view_of_step(const Tensor& x) {
  if (!x.defined()) return {};
  if (!view_of(x).count) return {.empty = x.detach()};
  Storage& storage = *storage_of(x);
  StepView made{memory_of(storage), view_of(x)};
  made.view.offset -= storage.offset;
  return made;
}

void StepCapture::touched(void* p) {
  if (is_paused()) return;
  Node* const node = static_cast<Node*>(p);
  if (std::ranges::any_of(gradients_, [&](const GradientPlace& each) { return each.node.get() == node; })) return;
  std::optional<size_t> argument;
  for (size_t i = 0; i < arguments_.size() && node->flags & Node::kUnasked; ++i)
    if (arguments_[i].impl().node.get() == node) argument = i;
  const Tensor& grad = node->grad;
  const bool alone = !grad.defined() || (grad.impl().refs.load() == 1 && storage_of(grad)->refs.load() == 1);
  gradients_.push_back({Ref<Node>::share(node), view_of_step(grad), {}, argument, alone ? nullptr : storage_of(grad)});
}

void StepCapture::run_part(observe::Part part) {
  StepRecorder::run_part(std::move(part));
  std::vector<FoundGradient> all;
  for (const GradientPlace& each : gradients_) all.push_back({each.node.get(), view_of_step(each.node->grad)});
  found.push_back(std::move(all));
}

// A node held only by the recording belonged to a result, and ended with the graph.
std::vector<GradientPlace> StepCapture::finish_gradients() {
  while (std::erase_if(gradients_, [](const GradientPlace& each) { return each.node->refs.load() == 1; })) {
  }
  for (std::vector<FoundGradient>& each : found)
    std::erase_if(each, [&](const FoundGradient& one) {
      return std::ranges::none_of(gradients_, [&](const GradientPlace& kept) { return kept.node.get() == one.node; });
    });
  for (GradientPlace& each : gradients_) each.after = view_of_step(each.node->grad);
  return std::move(gradients_);
}

void StepCapture::ran(DeviceState& device, const plugrad_kernel* kernel, const plugrad_op& op, Storage* const* storages,
                      Storage* workspace) {
  StepRecorder::ran(device, kernel, op, storages, workspace);
  if (digesting_ && !is_paused()) digests.push_back(steps::digest_of(op.views, storages, op.outputs));
}

void StepCapture::run_host(std::shared_ptr<observe::HostCall> call, DeviceState* device, const plugrad_op& op,
                           Storage* const* storages) {
  const bool in_flight = call->is_in_flight();
  StepRecorder::run_host(std::move(call), device, op, storages);
  if (!digesting_) return;
  if (!in_flight) host_results[digests.size()] = steps::contents_of(op.views, storages, op.outputs);
  digests.push_back(in_flight ? 0 : steps::digest_of(op.views, storages, op.outputs));
}

// --- Arguments, as the function gets them in a recording.

// Returns a storage over the same memory; it owns a reference to `outside`.
Ref<Storage> alias_of(Storage& outside) {
  const MemoryPiece piece{reinterpret_cast<uintptr_t>(outside.buffer), outside.offset, outside.bytes};
  Ref<Storage> inside = import_memory(*outside.device, piece, std::nullopt);
  inside->version = outside.version;
  const auto release = [](void* kept) { Ref<Storage>(static_cast<Storage*>(kept)); };
  own_memory(*inside, release, Ref<Storage>::share(&outside).release());
  return inside;
}

// Waits for all work, so that a storage and its alias do not depend on each other.
void settle(const Tensors& arguments) {
  for (const Tensor& each : arguments) {
    DeviceState& device = device_of(each);
    if (!device.compute) continue;
    streams::sync(*device.copies);
    streams::sync(*device.compute);
  }
}

class InsideArguments {
 public:
  explicit InsideArguments(const Tensors& arguments) {
    settle(arguments);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Tensor& x = arguments[i];
      Ref<Impl> impl(new (local().objects.get()) Impl(device_of(x), group_of(x, i).inside));
      impl->view = view_of(x);
      impl->node = x.impl().node;
      tensors.emplace_back(std::move(impl));
    }
  }
  ~InsideArguments() {
    for (ArgumentGroup& each : groups)
      if (each.inside) tell_writes(each);  // the function threw
  }
  InsideArguments(const InsideArguments&) = delete;
  // Ends the function's use of the arguments, and waits for its writes.
  void finish(StepCapture& recorder, const Tensors& arguments) {
    settle(tensors);
    for (ArgumentGroup& each : groups) {
      each.offset = view_of(tensors[each.first]).offset - each.outside->offset;
      tell_writes(each);
      if (recorder.knows(*each.inside)) each.memory = recorder.memory_of(*each.inside);
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].impl().node.get() == arguments[i].impl().node.get()) continue;
      arguments[i].impl().node = tensors[i].impl().node;
      recorder.fail("it changes whether an argument requires a gradient: do that outside");
    }
    for (const Tensor& each : tensors) {
      const ArgumentGroup& group = group_with(*storage_of(each));
      given.push_back({group.memory, view_of(each)});
      given.back().view.offset -= group.inside->offset;
    }
    tensors.clear();
    are_kept = std::ranges::any_of(groups, [](const ArgumentGroup& each) { return each.inside->refs.load() != 1; });
  }
  Tensor outside_of(const Tensor& result) const {
    for (const ArgumentGroup& each : groups) {
      if (storage_of(result) != each.inside.get()) continue;
      Ref<Impl> impl(new (local().objects.get()) Impl(device_of(result), each.outside));
      impl->view = view_of(result);
      return Tensor(std::move(impl));
    }
    return result.detach();
  }

  std::vector<ArgumentGroup> groups;
  std::vector<StepView> given;
  Tensors tensors;
  bool are_kept = false;  // whether the function kept an argument

 private:
  // The function may also have written to the outside storage itself.
  static void tell_writes(ArgumentGroup& group) {
    const uint32_t writes = group.inside->version - std::exchange(group.version, group.inside->version);
    if (writes) group.outside->version += writes;  // other threads may read an argument that nobody writes
  }
  const ArgumentGroup& group_with(const Storage& inside) const {
    return *std::ranges::find_if(groups, [&](const ArgumentGroup& each) { return each.inside.get() == &inside; });
  }
  ArgumentGroup& group_of(const Tensor& x, size_t at) {
    const auto outside = [](const ArgumentGroup& each) { return each.outside.get(); };
    const auto found = std::ranges::find(groups, storage_of(x), outside);
    if (found != groups.end()) return *found;
    return groups.emplace_back(
        ArgumentGroup{Ref<Storage>::share(storage_of(x)), alias_of(*storage_of(x)), at, storage_of(x)->version});
  }
};

// --- Why a recording cannot be replayed.

std::string name_of(const steps::Trace& trace, uint32_t memory) {
  for (const steps::Call& call : trace.calls)
    for (size_t i = 0; i < call.views.size(); ++i)
      if (call.memories[i] == memory)
        return "a tensor of " + shape_of(call.views[i]).text() + " " + dtype_label(call.views[i].dtype) +
               (call.writes(i) ? " which " + call.label() + " made" : "");
  return "a tensor";
}

std::string flaw_of(const steps::Trace& trace, const std::vector<StepView>& results,
                    const std::vector<GradientPlace>& gradients) {
  if (!trace.flaw.empty()) return trace.flaw;
  std::vector<bool> is_before(trace.memories.size()), is_after(trace.memories.size());
  for (const StepView& each : results) {
    if (each.defined()) is_after[each.memory] = true;
    if (!each.empty.defined()) continue;
    const auto is_its = [&](const steps::Memory& m) { return m.storage.get() == storage_of(each.empty); };
    const auto found = std::ranges::find_if(trace.memories, is_its);
    if (found != trace.memories.end()) is_after[static_cast<size_t>(found - trace.memories.begin())] = true;
  }
  for (const GradientPlace& each : gradients) {
    if (each.before.defined()) is_before[each.before.memory] = true;
    if (each.after.defined()) is_after[each.after.memory] = true;
  }
  for (uint32_t i = 0; i < trace.memories.size(); ++i) {
    const steps::Memory& m = trace.memories[i];
    if (!m.is_older() && m.outlives() && !is_after[i])
      return "it keeps " + name_of(trace, i) + ": return that, or write it to a tensor of the program with copy_";
  }
  for (uint32_t i = 0; i < trace.memories.size(); ++i) {
    const steps::Memory& m = trace.memories[i];
    if (m.is_older() && !m.outlives() && !is_before[i])
      return "it drops " + name_of(trace, i) + ", which is older than it: write to that tensor with copy_";
  }
  return {};
}

// Describes a result with a further owner of its memory, beside the step's own gradients: a replay would not reach this
// owner.
std::string kept_result_of(const FunctionRun& run) {
  std::map<Storage*, std::set<const Impl*>> holders;
  const auto hold = [&](const Tensor& x) {
    if (x.defined()) holders[storage_of(x)].insert(&x.impl());
  };
  for (const Tensor& each : run.results.tensors) hold(each);
  for (const GradientPlace& each : run.gradients) hold(each.node->grad);
  for (const StepView& each : run.returned) {
    if (!each.defined()) continue;
    const steps::Memory& memory = run.trace.memories[each.memory];
    if (memory.is_older() || !memory.storage) continue;
    if (memory.storage->refs.load() > holders[memory.storage.get()].size() + 1)
      return "it keeps " + name_of(run.trace, each.memory) + ", and returns it: keep what the step returns";
  }
  return {};
}

// Inside a step, autocast converts parameters anew: a conversion from before would be frozen in the recording.
class NoConversions {
 public:
  NoConversions() {
    if (autocasting()) outer_ = std::exchange(autocast_state().cache, std::make_shared<Autocast::State::Cache>());
  }
  ~NoConversions() {
    if (outer_) autocast_state().cache = std::move(outer_);
  }
  NoConversions(const NoConversions&) = delete;
  NoConversions& operator=(const NoConversions&) = delete;

 private:
  std::shared_ptr<Autocast::State::Cache> outer_;
};
}  // namespace

FunctionRun run_observed(const Tensors& arguments, const CompiledStep::Function& f, bool digests) {
  InsideArguments inside(arguments);
  FunctionRun run;
  StepCapture recorder(arguments, digests);
  {
    const NoConversions fresh;
    const StepResults made = f(inside.tensors);
    run.results.form = made.form;
    for (const Tensor& each : made.tensors) {
      run.returned.push_back(recorder.view_of_step(each));
      run.results.tensors.push_back(each.defined() ? inside.outside_of(each) : Tensor());
    }
  }
  inside.finish(recorder, arguments);
  run.gradients = recorder.finish_gradients();
  run.trace = recorder.finish();
  run.found = std::move(recorder.found);
  run.digests = std::move(recorder.digests);
  run.host_results = std::move(recorder.host_results);
  run.flaw = inside.are_kept ? "it keeps an argument, a view of one, or a result with its graph: keep a detached clone"
                             : flaw_of(run.trace, run.returned, run.gradients);
  if (run.flaw.empty()) run.flaw = kept_result_of(run);
  for (ArgumentGroup& each : inside.groups) each.inside = each.outside = {};
  run.arguments = std::move(inside.groups);
  run.given = std::move(inside.given);
  if (!run.trace.device && !arguments.empty()) run.trace.device = &device_of(arguments[0]);
  return run;
}

}  // namespace plugrad
