#include <core/steps/forms.hpp>

#include <core/runtime/dispatch/operand_forms.hpp>
#include <core/runtime/memory/small_blocks.hpp>

#include <algorithm>

namespace plugrad::steps {

bool FormMemory::is_fresh(const Storage& input) const {
  return is_made && version == input.version && exports == input.exports.load();
}
void FormMemory::note_made(const Storage& input) {
  is_made = !input.shared.load();  // another library may write to the input at any time
  version = input.version;
  exports = input.exports;
}

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
// Whether the step reads the memory without ever writing it, and finds it in one place.
std::vector<bool> find_inputs(const Trace& trace, const std::vector<uint32_t>& bound) {
  std::vector<bool> inputs(trace.memories.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Memory& m = trace.memories[i];
    inputs[i] = m.is_older() && m.storage && !m.storage->imported;
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
  Forming(Trace& trace, FormShelf& shelf) : trace_(trace), shelf_(shelf) {}

  void take(uint32_t at, size_t operand) {
    Call& call = trace_.calls[at];
    std::vector<const plugrad_view*> views;
    const auto found =
        form_of(*trace_.device, *call.kernel, op_of(call, views), static_cast<uint32_t>(operand - call.op.outputs));
    if (!found) return;
    const std::shared_ptr<FormMemory> memory = memory_of(call, operand, *found);
    if (!memory) return;
    const uint32_t input = call.memories[operand], place = place_of(*memory, found->bytes);
    Call maker{found->maker,
               call.op,
               {form_view(*memory->storage, found->bytes), call.views[operand]},
               {place, input},
               call.attributes};
    maker.op.outputs = maker.op.inputs = 1;
    maker.op.workspace_bytes = 0;
    made.push_back({std::move(maker), at, input, memory});
    call.has_form = true;
    call.memories[operand] = place;
    call.views[operand].buffer = memory->storage->buffer;
    call.views[operand].offset = memory->storage->offset;
    set_kernel(trace_, call, found->reader);
  }

  std::vector<Form> made;

 private:
  // Returns null if the device lacks the memory.
  std::shared_ptr<FormMemory> memory_of(const Call& call, size_t operand, const plugrad_form& form) {
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
    std::weak_ptr<FormMemory>& known = shelf_[key];
    if (std::shared_ptr<FormMemory> memory = known.lock()) return memory;
    const auto memory = std::make_shared<FormMemory>();
    try {
      memory->storage = allocate(*trace_.device, form.bytes, call.op.opcode);
    } catch (const Error& error) {
      if (error.code() != Code::out_of_memory) throw;
      return nullptr;
    }
    known = memory;
    return memory;
  }

  // The form is memory from outside the step, and constant: nobody else has it.
  uint32_t place_of(const FormMemory& memory, uint64_t bytes) {
    const auto [found, is_new] = places_.try_emplace(&memory, static_cast<uint32_t>(trace_.memories.size()));
    if (is_new) trace_.memories.push_back({memory.storage, bytes, memory.storage->offset, kNever, kNever, true});
    return found->second;
  }

  Trace& trace_;
  FormShelf& shelf_;
  std::map<const FormMemory*, uint32_t> places_;
};
}  // namespace

std::vector<Form> take_forms(Trace& trace, const std::vector<uint32_t>& bound, FormShelf& shelf) {
  if (!trace.device) return {};
  const plugrad_forms* const offered = forms_of(*trace.device);
  if (!offered || !offered->find) return {};
  std::erase_if(shelf, [](const auto& each) { return each.second.expired(); });
  const std::vector<bool> inputs = find_inputs(trace, bound);
  Forming forming(trace, shelf);
  for (uint32_t at = 0; at < trace.calls.size(); ++at) {
    if (trace.calls[at].host) continue;
    for (size_t i = trace.calls[at].op.outputs; i < trace.calls[at].memories.size(); ++i)
      if (const uint32_t memory = trace.calls[at].memories[i]; memory < inputs.size() && inputs[memory]) forming.take(at, i);
  }
  return std::move(forming.made);
}

}  // namespace plugrad::steps
