#include <core/steps/forms.hpp>

#include <core/runtime/dispatch/operand_forms.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/memory/budget.hpp>
#include <core/runtime/memory/import.hpp>
#include <core/runtime/memory/small_blocks.hpp>

#include <algorithm>
#include <map>
#include <string>

namespace plugrad::steps {

plugrad_op op_of(const Call& call, std::vector<const plugrad_view*>& views) {
  views.clear();
  for (const plugrad_view& each : call.views) views.push_back(&each);
  plugrad_op op = call.op;
  op.views = views.data();
  op.attributes = call.attributes.empty() ? nullptr : call.attributes.data();
  op.workspace = nullptr;
  op.workspace_offset = op.workspace_bytes = 0;
  return op;
}

void set_kernel(Trace& trace, Call& call, const plugrad_kernel* kernel) {
  call.kernel = kernel;
  std::vector<const plugrad_view*> views;
  const uint64_t bytes = trace.device->workspace_bytes(*kernel, op_of(call, views));
  if (bytes == UINT64_MAX)
    throw Error(Code::out_of_memory, "[compile] out of host memory for " + call.label() + " on " + trace.device->name);
  call.op.workspace_bytes = bytes;
  if (!bytes) {
    call.workspace = kNever;
  } else if (call.workspace != kNever) {
    trace.memories[call.workspace].bytes = bytes;
  } else {
    call.workspace = static_cast<uint32_t>(trace.memories.size());
    trace.memories.push_back({{}, bytes, 0, 0, 0, false});
  }
}

namespace {
// The last forms that were made, by input and kernel. Recordings own the forms and their inputs.
ForkMutex shelf_mutex;
using Shelf = std::map<std::string, std::weak_ptr<const FormMemory>>;
Shelf& shelf() {  // shelf_mutex held
  static Shelf& all = *new Shelf;
  return all;
}
std::shared_ptr<const FormMemory> known_form(const std::string& key) {
  const std::lock_guard lock(shelf_mutex);
  const auto found = shelf().find(key);
  std::shared_ptr<const FormMemory> form = found == shelf().end() ? nullptr : found->second.lock();
  return form && form->is_made ? form : nullptr;  // others still write to memory that is not made
}
void drop_expired() {
  const std::lock_guard lock(shelf_mutex);
  std::erase_if(shelf(), [](const auto& each) { return each.second.expired(); });
}

// Whether the step reads the memory without ever writing it, and finds it in one place.
std::vector<bool> find_inputs(const Trace& trace, const std::vector<uint32_t>& bound) {
  std::vector<bool> inputs(trace.memories.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Memory& m = trace.memories[i];
    inputs[i] = m.is_older() && m.storage && !is_of_others(*m.storage);
  }
  for (const uint32_t each : bound) inputs[each] = false;
  for (const Call& call : trace.calls)
    for (size_t i = 0; i < call.op.outputs; ++i)
      if (call.memories[i] != kNever) inputs[call.memories[i]] = false;
  return inputs;
}

plugrad_view form_view(const Storage& storage, uint64_t bytes) {
  plugrad_view view{};
  view.buffer = storage.buffer;
  view.offset = storage.offset;
  view.count = view.shape[0] = static_cast<int64_t>(bytes);
  view.dtype = PLUGRAD_U8;
  view.rank = 1;
  view.strides[0] = 1;
  if (view.count > INT32_MAX) view.layout |= PLUGRAD_WIDE_INDEX;
  return view;
}

class Forming {
 public:
  explicit Forming(Trace& trace) : trace_(trace) {}

  void take(uint32_t at, size_t operand) {
    Call& call = trace_.calls[at];
    std::vector<const plugrad_view*> views;
    const auto found =
        form_of(*trace_.device, *call.kernel, op_of(call, views), static_cast<uint32_t>(operand - call.op.outputs));
    if (!found) return;
    const std::string key = key_of(call, operand, *found);
    const auto known = places_.find(key);
    const uint32_t place = known == places_.end() ? add(key, *found) : known->second;
    if (place == kNever) return;
    const Storage& storage = *trace_.memories[place].storage;
    const uint32_t input = call.memories[operand];
    Call maker{
        found->maker, call.op, {form_view(storage, found->bytes), call.views[operand]}, {place, input}, call.attributes};
    maker.op.outputs = maker.op.inputs = 1;
    maker.op.workspace_bytes = 0;
    made.push_back({std::move(maker), at, input, place, key, memories_.at(place)});
    call.has_form = true;
    call.memories[operand] = place;
    call.views[operand].buffer = storage.buffer;
    call.views[operand].offset = storage.offset;
    set_kernel(trace_, call, found->reader);
  }

  std::vector<Form> made;

 private:
  std::string key_of(const Call& call, size_t operand, const plugrad_form& form) const {
    std::string key;
    const auto add = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
    add(trace_.memories[call.memories[operand]].storage.get());
    add(form.maker);
    add(form.bytes);
    const plugrad_view& v = call.views[operand];
    add(v.offset);
    for (int i = 0; i < v.rank; ++i) {
      add(v.shape[i]);
      add(v.strides[i]);
    }
    key.append(reinterpret_cast<const char*>(call.attributes.data()), call.attributes.size());
    return key;
  }

  // The form is memory from outside the step, and constant: no tensor has it. Returns kNever if the device lacks the memory.
  uint32_t add(const std::string& key, const plugrad_form& form) {
    std::shared_ptr<const FormMemory> memory = known_form(key);
    try {
      const BudgetScope unbounded(nullptr);  // all steps of the process share it
      if (!memory) memory = std::make_shared<FormMemory>(FormMemory{allocate(*trace_.device, form.bytes, 0)});
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;
      return places_[key] = kNever;
    }
    const auto place = static_cast<uint32_t>(trace_.memories.size());
    trace_.memories.push_back({memory->storage, form.bytes, memory->storage->offset, kNever, kNever, true});
    memories_[place] = std::move(memory);
    return places_[key] = place;
  }

  Trace& trace_;
  std::map<std::string, uint32_t> places_;
  std::map<uint32_t, std::shared_ptr<const FormMemory>> memories_;
};
}  // namespace

std::shared_ptr<const FormMemory> refreshed(const Form& form, const Storage& input,
                                            const std::function<void(Storage&)>& make) {
  const std::lock_guard lock(shelf_mutex);
  std::weak_ptr<const FormMemory>& known = shelf()[form.key];
  if (std::shared_ptr<const FormMemory> other = known.lock(); other && other->is_fresh(input)) return other;
  const BudgetScope unbounded(nullptr);
  const auto made = std::make_shared<FormMemory>();
  made->storage = form.memory->is_made ? allocate(*input.device, form.memory->storage->size, 0) : form.memory->storage;
  made->version = input.version;
  made->exports = input.exports;
  const bool is_shared = input.shared.load();  // another library may write to the input at any time
  make(*made->storage);
  made->is_made = !is_shared;
  known = made;
  return made;
}

std::vector<Form> take_forms(Trace& trace, const std::vector<uint32_t>& bound) {
  if (!trace.device) return {};
  const plugrad_forms* const offered = forms_of(*trace.device);
  if (!offered || !offered->find) return {};
  drop_expired();
  const std::vector<bool> inputs = find_inputs(trace, bound);
  Forming forming(trace);
  for (uint32_t at = 0; at < trace.calls.size(); ++at) {
    if (trace.calls[at].host) continue;
    for (size_t i = trace.calls[at].op.outputs; i < trace.calls[at].memories.size(); ++i)
      if (const uint32_t memory = trace.calls[at].memories[i]; memory < inputs.size() && inputs[memory]) forming.take(at, i);
  }
  return std::move(forming.made);
}

}  // namespace plugrad::steps
