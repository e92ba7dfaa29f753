#include <plugrad/io/saved_model.hpp>

#include <core/io/model_format.hpp>
#include <core/runtime/device_state.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/autograd/autocast.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/cancel.hpp>

#include <algorithm>

namespace plugrad {
using namespace io;

struct SavedModel::State {
  State(ModelContents read, std::vector<Tensor> with, Device on, const std::string& name)
      : contents(std::move(read)), weights(std::move(with)), device(on), step({.name = name}) {
    for (const ModelView& each : contents.inputs) inputs.push_back({contents.memories[each.memory].dtype, each.shape});
    for (const ModelView& each : contents.outputs) outputs.push_back({contents.memories[each.memory].dtype, each.shape});
    find_last_uses();
  }

  void find_last_uses() {
    last_use.resize(contents.memories.size());
    for (size_t i = 0; i < contents.ops.size(); ++i) {
      for (const ModelInput& each : contents.ops[i].inputs)
        if (each.view) last_use[each.view->memory] = i;
      for (const ModelView& each : contents.ops[i].outputs) last_use[each.memory] = i;
    }
    for (const ModelView& each : contents.outputs) last_use[each.memory] = contents.ops.size();
  }

  void require(const std::vector<Tensor>& given) const;
  std::vector<Tensor> run(const std::vector<Tensor>& given) const;
  void run_one(size_t i, std::vector<Tensor>& memory) const;
  bool is_weight(const Tensor& x) const;
  static bool is_whole(const ModelView& view, const ModelMemory& memory);
  static Tensor seen(const Tensor& memory, const ModelView& view);

  const ModelContents contents;
  const std::vector<Tensor> weights;  // by memory; undefined for memories without a weight
  const Device device;
  CompiledStep step;
  std::vector<ModelTensor> inputs, outputs;
  std::vector<size_t> last_use;  // by memory: the op
};

void SavedModel::State::require(const std::vector<Tensor>& given) const {
  const auto refuse = [](const std::string& why) { throw Error(Code::invalid, "[saved model] " + why); };
  if (given.size() != inputs.size())
    refuse("it takes " + std::to_string(inputs.size()) + " inputs, not " + std::to_string(given.size()));
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string which = "input " + std::to_string(i) + " is ";
    const Tensor& x = given[i];
    if (!x.defined()) refuse(which + "undefined");
    if (x.shape() != inputs[i].shape || x.dtype() != inputs[i].dtype)
      refuse(which + x.shape().text() + " " + dtype_name(x.dtype()) + ", and the model takes " + inputs[i].shape.text() +
             " " + dtype_name(inputs[i].dtype));
    if (x.device() != device) refuse(which + "on " + x.device().name() + ", and the model runs on " + device.name());
  }
}

Tensor SavedModel::State::seen(const Tensor& memory, const ModelView& view) {
  Shape strides = view.strides, backwards;
  int64_t offset = view.offset;
  for (int d = 0; d < strides.rank(); ++d) {
    if (strides[d] >= 0) continue;
    offset += (view.shape[d] - 1) * strides[d];
    strides[d] = -strides[d];
    backwards.push_back(d);
  }
  const Tensor part = as_strided(memory, view.shape, strides, offset);
  return backwards.rank() ? flip(part, backwards) : part;
}

bool SavedModel::State::is_whole(const ModelView& view, const ModelMemory& memory) {
  int64_t count = 1;
  for (int d = view.shape.rank(); d-- > 0; count *= view.shape[d])
    if (view.shape[d] > 1 && view.strides[d] != count) return false;
  return count == memory.count;
}

void SavedModel::State::run_one(size_t i, std::vector<Tensor>& memory) const {
  const ModelOp& op = contents.ops[i];
  std::vector<Tensor> given;
  for (const ModelInput& each : op.inputs)
    given.push_back(each.view ? seen(memory[each.view->memory], *each.view) : Tensor());
  const bool adds = op_info(op.opcode)->is_in_out(0);
  const Tensor before = adds ? seen(memory[op.outputs[0].memory], op.outputs[0]) : Tensor();
  const std::vector<Tensor> made = run_op(op, contents.memories, given, before, device);
  for (size_t k = 0; k < made.size(); ++k) {
    const ModelView& to = op.outputs[k];
    const ModelMemory& its = contents.memories[to.memory];
    if (made[k].shape() != to.shape || made[k].dtype() != its.dtype)
      throw Error(Code::invalid, "its result is " + made[k].shape().text() + " " + dtype_name(made[k].dtype()) +
                                     ", and the file says " + to.shape.text() + " " + dtype_name(its.dtype));
    if (is_whole(to, its)) {
      memory[to.memory] = flatten(contiguous(made[k]));
      continue;
    }
    if (!memory[to.memory].defined()) memory[to.memory] = zeros({its.count}, its.dtype, device);
    seen(memory[to.memory], to).copy_(made[k]);
  }
}

std::vector<Tensor> SavedModel::State::run(const std::vector<Tensor>& given) const {
  const NoGrad unrecorded;
  const Autocast as_saved(AutocastOptions{.enabled = false});
  std::vector<Tensor> memory = weights;
  for (size_t i = 0; i < given.size(); ++i) memory[contents.inputs[i].memory] = flatten(contiguous(given[i]));
  for (size_t i = 0; i < contents.ops.size(); ++i) {
    throw_if_cancelled();
    const auto where = [&] { return "call " + std::to_string(i) + " of the model, " + op_label(contents.ops[i].opcode); };
    try {
      run_one(i, memory);
    } catch (const Error& error) {
      throw Error(error.code(), "[saved model] " + where() + ": " + error.what());
    } catch (const std::exception& error) {
      throw Error(Code::invalid, "[saved model] " + where() + ": " + error.what());
    }
    const auto drop = [&](uint32_t each) {
      if (last_use[each] == i) memory[each] = {};
    };
    for (const ModelInput& each : contents.ops[i].inputs)
      if (each.view) drop(each.view->memory);
    for (const ModelView& each : contents.ops[i].outputs) drop(each.memory);
  }
  std::vector<Tensor> results;
  for (const ModelView& each : contents.outputs) {
    const Tensor result = seen(memory[each.memory], each);
    results.push_back(is_weight(result) ? clone(result) : result);  // the caller may write to it
  }
  return results;
}

bool SavedModel::State::is_weight(const Tensor& x) const {
  return std::ranges::any_of(weights,
                             [&](const Tensor& each) { return each.defined() && storage_of(each) == storage_of(x); });
}

SavedModel::SavedModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
SavedModel::SavedModel(SavedModel&&) noexcept = default;
SavedModel& SavedModel::operator=(SavedModel&&) noexcept = default;
SavedModel::~SavedModel() = default;

const std::vector<ModelTensor>& SavedModel::inputs() const { return state_->inputs; }
const std::vector<ModelTensor>& SavedModel::outputs() const { return state_->outputs; }
Device SavedModel::device() const { return state_->device; }
std::string SavedModel::explain() const { return state_->step.explain(); }

std::vector<Tensor> SavedModel::operator()(const std::vector<Tensor>& inputs) const {
  state_->require(inputs);
  std::vector<Tensor> plain;
  for (const Tensor& each : inputs) plain.push_back(each.detach());
  const auto f = [&](const std::vector<Tensor>& given) { return StepResults{state_->run(given)}; };
  return state_->step.call(plain, "", f).tensors;
}

namespace {
// Together the memories must fit into the device's memory. A device without a stated size allows 64 GiB.
std::string want_of_memory(const ModelContents& model, const Device& device) {
  const uint64_t installed = device.physical_memory().second, limit = installed ? installed : uint64_t{64} << 30;
  uint64_t needed = 0;
  for (const ModelMemory& each : model.memories) {
    const uint64_t bytes = static_cast<uint64_t>(each.count) * static_cast<uint64_t>(item_size(each.dtype));
    if (__builtin_add_overflow(needed, bytes, &needed) || needed > limit)
      return "it needs more than the " + std::to_string(limit >> 20) + " MiB of " + device.name();
  }
  return {};
}
}  // namespace

StoredModel io::read_model(const std::string& path, Device device, bool mmap) {
  const auto fail = [&](const std::string& what) {
    throw Error(Code::io_error, "[load_model] '" + path + "' is not a model that can run: " + what);
  };
  const SafetensorsFile file(path);
  const auto text = file.header().metadata.find(kModelKey);
  if (text == file.header().metadata.end())
    fail(std::string("it has no '") + kModelKey + "' in its metadata: write one with save_model, or step.save");
  ModelContents model = parsed_model(text->second, fail);
  if (const std::string want = want_of_memory(model, device); !want.empty()) fail(want);
  std::vector<Tensor> weights(model.memories.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const ModelMemory& memory = model.memories[i];
    if (memory.weight.empty()) continue;
    const auto entry = file.header().tensors.find(memory.weight);
    if (entry == file.header().tensors.end()) fail("it has no tensor '" + memory.weight + "'");
    if (entry->second.dtype != memory.dtype || entry->second.shape.count() != memory.count)
      fail("its tensor '" + memory.weight + "' has another dtype or size than its memory");
    weights[i] = flatten(mmap ? file.map(memory.weight, device) : file.get(memory.weight, device));
  }
  return {std::move(model), std::move(weights)};
}

SavedModel load_model(const std::string& path, Device device, bool mmap) {
  StoredModel read = read_model(path, device, mmap);
  return SavedModel(std::make_unique<SavedModel::State>(std::move(read.contents), std::move(read.weights), device, path));
}

}  // namespace plugrad
