#include <core/steps/recording.hpp>

#include <core/runtime/dispatch/extent.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/digest.hpp>
#include <plugrad/runtime/generator.hpp>

#include <algorithm>
#include <sstream>

namespace plugrad {
namespace {
bool same_view(const plugrad_view& a, const plugrad_view& b) {
  if (a.offset != b.offset || !same_shape(a, b)) return false;
  return std::equal(a.strides, a.strides + a.rank, b.strides);
}

// Whether a tensor has the form of a view of the step.
bool same_form(const Tensor& x, const StepView& recorded) {
  const plugrad_view &a = view_of(x), &b = recorded.view;
  if (a.dtype != b.dtype || a.layout != b.layout || !same_shape(a, b)) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}
}  // namespace

Recording::Recording(std::string with_key, FunctionRun run, std::shared_ptr<steps::Arena> arena,
                     const steps::FusionChoice& fusions)
    : key(std::move(with_key)), arguments_(std::move(run.arguments)), given_(std::move(run.given)),
      results_(std::move(run.returned)), form_(run.results.form), gradients_(std::move(run.gradients)), arena_(arena),
      runner_(plan_of(std::move(run.trace), fusions), std::move(arena)) {
  make_placeholders(run.found);
  find_rows();
  release();
  const std::vector<steps::Memory>& memories = runner_.plan().trace.memories;
  for (uint32_t memory = 0; memory < memories.size(); ++memory) {
    if (!memories[memory].is_older()) continue;
    if (runner_.plan().writes(memory)) written_.push_back(memory);
    if (memories[memory].storage) outside_.push_back(memory);
  }
  for (const uint32_t each : outside_) ++memories[each].storage->traces;
  find_extents();
  find_effects();
}

Recording::~Recording() {
  for (const uint32_t each : outside_) --runner_.plan().trace.memories[each].storage->traces;
}

// Memories of arguments, gradients and results are bound to their storages before each replay.
steps::Plan Recording::plan_of(steps::Trace trace, const steps::FusionChoice& fusions) {
  steps::Outside outside;
  std::vector<uint32_t>& bound = outside.all;
  const auto add = [&](uint32_t memory) {
    if (memory != steps::kNever && std::ranges::find(bound, memory) == bound.end()) bound.push_back(memory);
  };
  for (const ArgumentGroup& each : arguments_) add(each.memory);
  for (const GradientPlace& each : gradients_) add(each.before.memory);
  const size_t inputs = bound.size();
  for (const StepView& each : results_)
    if (each.defined() && !trace.memories[each.memory].is_older()) add(each.memory);
  const size_t results = bound.size();
  for (const GradientPlace& each : gradients_)
    if (each.after.defined() && !trace.memories[each.after.memory].is_older()) add(each.after.memory);
  outside.row.assign(bound.begin() + static_cast<std::ptrdiff_t>(results), bound.end());
  for (size_t i = inputs; i < bound.size(); ++i) outputs_.push_back({bound[i], trace.memories[bound[i]].bytes});
  for (const uint32_t each : bound) trace.memories[each].storage = {};
  return steps::make_plan(std::move(trace), std::move(outside), fusions);
}

void Recording::make_placeholders(const std::vector<std::vector<FoundGradient>>& found) {
  for (const std::vector<FoundGradient>& part : found) {
    std::vector<Placeholder>& made = placeholders_.emplace_back();
    for (const FoundGradient& each : part) {
      const auto place = std::ranges::find(gradients_, each.node, [](const GradientPlace& one) { return one.node.get(); });
      made.push_back({static_cast<size_t>(place - gradients_.begin()), {}});
      if (!each.gradient.defined()) continue;
      const Tensor memory = empty(*runner_.plan().trace.device, Shape(), each.gradient.view.dtype);
      plugrad_view view = each.gradient.view;
      view.buffer = view_of(memory).buffer;
      view.offset = view_of(memory).offset;
      made.back().gradient = with_view(memory, view);
    }
  }
}

bool Recording::fits(const std::vector<Tensor>& arguments) const {
  for (const GradientPlace& each : gradients_) {
    const Node& node = each.argument ? *arguments[*each.argument].impl().node : *each.node;
    if (node.grad.defined() != each.before.defined()) return false;
    if (!each.before.defined()) continue;
    if (!same_form(node.grad, each.before)) return false;
    if (each.shared && storage_of(node.grad) != each.shared && is_used(each.before.memory)) return false;
  }
  return has_captured();
}

bool Recording::has_captured() const {
  const std::vector<steps::Memory>& memories = runner_.plan().trace.memories;
  return std::ranges::none_of(outside_, [&](uint32_t each) {
    const Storage& storage = *memories[each].storage;
    return !memories[each].constant &&
           storage.refs.load(std::memory_order_relaxed) == storage.traces.load(std::memory_order_relaxed);
  });
}

// --- Memory in two tensors.

void Recording::find_extents() {
  for (const uint32_t each : outside_) {
    const steps::Memory& memory = runner_.plan().trace.memories[each];
    if (!memory.constant) extents_.push_back(extent_of(*memory.storage, runner_.plan().writes(each), each));
  }
  extents_conflict_ = !are_independent(extents_);
}

bool Recording::only_reads(size_t argument, const std::vector<Tensor>& arguments) const {
  const uint32_t memory = given_[argument].memory;
  const auto is_part = [memory](const StepView& each) { return each.memory == memory; };
  if (runner_.plan().writes(memory) || std::ranges::any_of(results_, is_part)) return false;
  const MemoryExtent read = extent_of(*storage_of(arguments[argument]), false);
  const auto conflicts = [&read](const MemoryExtent& each) { return each.conflicts_with(read); };
  return std::ranges::none_of(extents_, conflicts) && std::ranges::none_of(moving_extents(arguments), conflicts);
}

std::vector<MemoryExtent> Recording::moving_extents(const std::vector<Tensor>& arguments) const {
  std::vector<MemoryExtent> moving;
  for (const ArgumentGroup& each : arguments_)
    if (each.memory != steps::kNever)
      moving.push_back(extent_of(*storage_of(arguments[each.first]), runner_.plan().writes(each.memory)));
  for (const GradientPlace& each : gradients_) {
    if (!each.before.defined() || !is_used(each.before.memory)) continue;
    const Node& node = each.argument ? *arguments[*each.argument].impl().node : *each.node;
    if (storage_of(node.grad) != each.shared) moving.push_back(extent_of(*storage_of(node.grad), true));
  }
  return moving;
}

bool Recording::overlaps(const std::vector<Tensor>& arguments) const {
  // Fusions change the order of calls, and forms are made before all calls.
  if (!runner_.plan().fused.reorders && runner_.plan().forms.empty()) return false;
  if (extents_conflict_) return true;
  const std::vector<MemoryExtent> moving = moving_extents(arguments);
  for (size_t i = 0; i < moving.size(); ++i) {
    const auto conflicts = [&](const MemoryExtent& each) { return each.conflicts_with(moving[i]); };
    if (std::any_of(moving.begin(), moving.begin() + static_cast<std::ptrdiff_t>(i), conflicts)) return true;
    if (std::ranges::any_of(extents_, conflicts)) return true;
  }
  return false;
}

// --- Numbers.

// Calls f while the nodes hold the placeholders of a part.
template <class F> auto Recording::with_placeholders(size_t part, const F& f) {
  struct Exchange {
    Exchange(std::vector<Placeholder>& with, std::vector<GradientPlace>& at) : all(with), places(at) { swap(); }
    ~Exchange() { swap(); }
    void swap() {
      for (Placeholder& each : all) std::swap(places[each.place].node->grad, each.gradient);
    }
    std::vector<Placeholder>& all;
    std::vector<GradientPlace>& places;
  };
  const Exchange exchanged(placeholders_[part], gradients_);
  return f();
}

// Either all parts advance, or no part does.
bool Recording::renumber() {
  for (size_t part = 0; part < placeholders_.size(); ++part) {
    if (with_placeholders(part, [&] { return runner_.advance(part); })) continue;
    undo_parts(part);
    return false;
  }
  return true;
}

void Recording::undo(size_t part) { with_placeholders(part, runner_.plan().trace.parts[part].part.undo); }

// Undoes the first parts, in reverse: an undo restores what its advance() found.
void Recording::undo_parts(size_t parts) {
  while (parts) undo(--parts);
}

// --- Results.

Tensor Recording::tensor_of(const StepView& view) const {
  const steps::Bound& now = runner_.where(view.memory);
  Ref<Impl> impl(new (local().objects.get()) Impl(*now.storage->device, Ref<Storage>::share(now.storage)));
  impl->view = view.view;
  impl->view.buffer = now.storage->buffer;
  impl->view.offset += now.base;
  return Tensor(std::move(impl));
}

void Recording::store_gradients() {
  for (GradientPlace& each : gradients_) {
    if (!each.after.defined()) each.node->grad = {};
    else if (each.after.memory != each.before.memory || !same_view(each.after.view, each.before.view))
      each.node->grad = tensor_of(each.after);
  }
}

void Recording::raise_versions() {
  for (const uint32_t each : written_) ++runner_.where(each).storage->version;
}

void Recording::find_nodes(const std::vector<Tensor>& arguments) {
  for (GradientPlace& each : gradients_)
    if (each.argument) each.node = arguments[*each.argument].impl().node;
}

// Between replays, only the program holds results and the nodes of arguments.
void Recording::release() {
  for (GradientPlace& each : gradients_)
    if (each.argument) each.node = {};
  for (Output& each : outputs_) each.storage = {};
  for (Row& each : rows_) each.spare = {};
  held_.clear();
}

// After a failure, takes back the random numbers of unreached calls, and undoes unreached parts.
void Recording::run() {
  try {
    runner_.run();
  } catch (...) {
    raise_versions();
    runner_.take_back_draws();
    for (size_t i = placeholders_.size(); i > 0; --i)
      if (runner_.missed(runner_.plan().trace.parts[i - 1])) undo(i - 1);
    release();
    throw;
  }
  raise_versions();
}

std::optional<StepResults> Recording::replay(const std::vector<Tensor>& arguments) {
  find_nodes(arguments);
  if (!renumber()) return std::nullopt;
  bind_arguments(arguments);
  bind_gradients();
  try {
    bind_outputs(false);
  } catch (...) {
    undo_parts(placeholders_.size());
    release();
    throw;
  }
  runner_.draw();
  run();
  store_gradients();
  StepResults results{{}, form_};
  results.tensors.reserve(results_.size());
  for (const StepView& each : results_) results.tensors.push_back(each.defined() ? tensor_of(each) : each.empty);
  release();
  return results;
}

void Recording::find_effects() {
  const steps::Trace& trace = runner_.plan().trace;
  const auto by_host = [](const steps::Call& each) { return each.host && each.host->has_effects(); };
  has_no_effects_ = trace.parts.empty() && trace.lifted.empty() && !trace.draws && gradients_.empty() && written_.empty() &&
                    std::ranges::none_of(trace.calls, by_host);
}

Recording::ForwardPass Recording::forward_pass() const {
  const auto refuse = [](const char* what) {
    throw Error(Code::invalid, std::string("[save] the compiled function ") + what +
                                   ": save a forward pass, such as a "
                                   "model in evaluation mode under NoGrad");
  };
  if (!runner_.plan().trace.parts.empty()) refuse("runs an optimiser");
  if (takes_numbers())
    refuse("takes a number that differs from call to call: compile it anew, and call it once, to save it");
  if (runner_.plan().trace.draws) refuse("draws random numbers");
  if (!gradients_.empty()) refuse("reads or changes gradients");
  const auto host = std::ranges::find_if(runner_.plan().trace.calls, [](const auto& each) { return each.host != nullptr; });
  if (host != runner_.plan().trace.calls.end()) refuse(("calls " + host->label() + ", which needs the host").c_str());
  for (const uint32_t each : written_)
    if (!runner_.plan().trace.memories[each].constant) refuse("writes to a tensor that is older than it");
  return {runner_.plan().recorded_calls(), runner_.plan().trace.memories, given_, results_};
}

// --- Numbers of the caller.

namespace {
// free: whether an operand is a number that may differ.
template <class Free> bool same_call(const steps::Call& a, const steps::Call& b, bool same_attributes, const Free& free) {
  if (a.op.opcode != b.op.opcode || a.op.outputs != b.op.outputs || a.views.size() != b.views.size()) return false;
  if (!a.host != !b.host || (same_attributes && a.attributes != b.attributes)) return false;
  for (uint32_t i = 0; i < a.views.size(); ++i) {
    const plugrad_view &x = a.views[i], &y = b.views[i];
    if (x.dtype != y.dtype || x.layout != y.layout || !same_shape(x, y) || a.memories[i] != b.memories[i]) return false;
    if (x.layout & PLUGRAD_IMMEDIATE && !free(i) && x.offset != y.offset) return false;
  }
  return true;
}
}  // namespace

bool Recording::has_calls_of(const Recording& other) const {
  const steps::Plan &plan = runner_.plan(), &theirs = other.runner_.plan();
  const std::vector<steps::Call>& calls = plan.recorded_calls();
  if (calls.size() != theirs.recorded_calls().size() || results_.size() != other.results_.size()) return false;
  auto next = plan.trace.lifted.begin();  // in the order of the calls
  for (uint32_t at = 0; at < calls.size(); ++at) {
    const auto first = next;
    while (next != plan.trace.lifted.end() && next->call == at) ++next;
    // Optimisers and generators have numbers of their own in each step.
    const bool by_part = std::ranges::any_of(plan.trace.parts, [at](const auto& p) { return p.first <= at && at < p.last; });
    const bool has_own = by_part || calls[at].is_random();
    const auto is_free = [&](uint32_t i) {
      return has_own || std::any_of(first, next, [i](const auto& each) { return each.operand == i; });
    };
    if (!same_call(calls[at], theirs.recorded_calls()[at], !by_part, is_free)) return false;
  }
  return true;
}

// --- Checks.

std::optional<std::vector<uint64_t>> Recording::rehearse(const std::vector<Tensor>& arguments,
                                                         const std::function<const steps::HostResults&()>& function) {
  find_nodes(arguments);
  if (!renumber()) return std::nullopt;
  undo_parts(placeholders_.size());
  const struct Release {
    ~Release() { of.release(); }
    Recording& of;
  } at_end{*this};
  bind_arguments(arguments);
  bind_gradient_copies();
  bind_outputs(true);
  const auto snapshots = [&] {
    std::vector<steps::Snapshot> all;
    for (const uint32_t each : written_) all.emplace_back(*runner_.where(each).storage);
    return all;
  };
  const std::vector<steps::Snapshot> before = snapshots();
  const GeneratorState drawn = generator_state(Device(runner_.plan().trace.device));
  runner_.draw();
  set_generator_state(Device(runner_.plan().trace.device), drawn);
  const steps::HostResults& given = function();
  const std::vector<steps::Snapshot> after = snapshots();
  for (const steps::Snapshot& each : before) each.put_back();
  std::vector<uint64_t> digests = runner_.run_with_digests(given);
  for (const steps::Snapshot& each : after) each.put_back();
  return digests;
}

namespace {
std::string text_of(const steps::Call& call) {
  if (call.host) return call.label();
  return call.label() + " of " + shape_of(call.views[0]).text() + " " + dtype_label(call.views[0].dtype);
}
}  // namespace

std::string Recording::difference(const std::vector<uint64_t>& digests, const FunctionRun& run) const {
  const std::vector<steps::Call>&ours = runner_.plan().recorded_calls(), &theirs = run.trace.calls;
  const std::string depends = ". It depends on something other than tensors: pass that as an argument";
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const std::string where = "call " + std::to_string(i) + " is ";
    if (i == ours.size())
      return where + "missing in the recording, and " + text_of(theirs[i]) + " in the function" + depends;
    if (i == theirs.size()) return where + text_of(ours[i]) + " in the recording, and missing in the function" + depends;
    if (text_of(ours[i]) != text_of(theirs[i]))
      return where + text_of(ours[i]) + " in the recording, and " + text_of(theirs[i]) + " in the function" + depends;
    if (digests[i] && digests[i] != run.digests[i])
      return where + text_of(ours[i]) + ", whose results differ between a replay and the function" + depends;
  }
  return {};
}

uint64_t Recording::bytes() const {
  const steps::Trace& trace = runner_.plan().trace;
  uint64_t bytes = sizeof(Recording) + trace.memories.size() * sizeof(steps::Memory);
  for (const steps::Call& each : trace.calls)
    bytes += sizeof each + each.views.size() * (sizeof each.views[0] + sizeof each.memories[0]) + each.attributes.size();
  uint64_t forms = 0;
  for (const steps::Form& each : runner_.plan().forms) forms += each.memory->storage->size;
  // The plan has as much again, and a device's list some 2 KB for a call.
  return 2 * bytes + 2048 * trace.calls.size() + runner_.plan().placed.constant_bytes + forms;
}

std::string Recording::text() const {
  const steps::Plan& plan = runner_.plan();
  const size_t calls = plan.trace.calls.size(), once = plan.simplified.once.size(), unused = plan.simplified.unused;
  std::ostringstream text;
  text << calls << " calls: " << calls - once - unused << " in each replay, " << plan.fused.fused << " of them in fusions, "
       << once << " that make constants, " << unused << " whose results nothing reads; " << plan.placed.temporary_bytes
       << " bytes of temporary memory in " << plan.placed.arena_bytes;
  if (plan.images) text << "; " << plan.images << " images with channels last";
  if (!plan.forms.empty()) text << "; " << plan.forms.size() << " operands in the device's own forms";
  text << runner_.text();
  return text.str();
}

}  // namespace plugrad
