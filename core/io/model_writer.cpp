// From a recording to the contents of a file.
#include <core/io/model_format.hpp>
#include <core/io/strict_json.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/steps/recording.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

namespace plugrad {
namespace io {
namespace {
using steps::kNever;

class Saver {
 public:
  explicit Saver(const Recording::ForwardPass& pass) : pass_(pass), places_(pass.memories.size(), kNever) {}

  StoredModel stored() {
    for (size_t i = 0; i < pass_.given.size(); ++i) add_input(i);
    const std::vector<bool> used = find_used();
    for (size_t at = 0; at < used.size(); ++at)
      if (used[at]) add_call(pass_.calls[at]);
    for (const StepView& each : pass_.results) {
      if (!each.defined()) refuse("returns a tensor without elements");
      model_.outputs.push_back(view_of(each.memory, each.view, each.view.offset));
    }
    for (const auto& [place, memory] : sources_) model_.memories[place].weight = "weight." + std::to_string(place);
    check_order();
    std::vector<Tensor> tensors = weights();
    return {std::move(model_), std::move(tensors)};
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(Code::invalid, "[save] the compiled function " + what);
  }

  void add_input(size_t i) {
    const StepView& each = pass_.given[i];
    const std::string which = "argument " + std::to_string(i);
    if (each.view.layout & PLUGRAD_STRIDED) refuse("has a strided " + which + ": record it with a contiguous one");
    if (each.memory != kNever && places_[each.memory] != kNever) refuse("has arguments that share memory: pass copies");
    const auto place = static_cast<uint32_t>(model_.memories.size());
    model_.memories.push_back({static_cast<DType>(each.view.dtype), each.view.count, {}});
    if (each.memory != kNever) {
      places_[each.memory] = place;
      first_[each.memory] = static_cast<int64_t>(each.view.offset);
    }
    model_.inputs.push_back({place, 0, shape_of(each.view), {}});
  }

  std::vector<bool> find_used() const {
    std::vector<bool> used(pass_.calls.size()), needed(pass_.memories.size());
    for (const StepView& each : pass_.results)
      if (each.defined()) needed[each.memory] = true;
    for (size_t at = used.size(); at-- > 0;) {
      const steps::Call& call = pass_.calls[at];
      for (size_t i = 0; i < call.op.outputs; ++i) used[at] = used[at] || needed[call.memories[i]];
      for (size_t i = 0; used[at] && i < call.memories.size(); ++i)
        if (call.memories[i] != kNever) needed[call.memories[i]] = true;
    }
    return used;
  }

  // offset: in bytes, from the memory's base.
  ModelView view_of(uint32_t memory, const plugrad_view& v, uint64_t offset) {
    const auto size = static_cast<int64_t>(dtype_size(v.dtype));
    uint32_t& place = places_[memory];
    if (place == kNever) {
      place = static_cast<uint32_t>(model_.memories.size());
      model_.memories.push_back({static_cast<DType>(v.dtype), 0, {}});
      if (pass_.memories[memory].storage) sources_[place] = memory;
    }
    ModelMemory& it = model_.memories[place];
    if (it.dtype != static_cast<DType>(v.dtype)) refuse("looks at one memory in two dtypes");
    ModelView made{place, (static_cast<int64_t>(offset) - first_[memory]) / size, {}, {}};
    int64_t first = made.offset, last = made.offset;
    for (int d = 0; d < v.rank; ++d) {
      made.shape.push_back(v.shape[d]);
      made.strides.push_back(v.shape[d] > 1 ? v.strides[d] : 0);
      (made.strides[d] < 0 ? first : last) += (v.shape[d] - 1) * made.strides[d];
    }
    if (first < 0 || (it.count && is_input(place) && last >= it.count)) refuse("looks beyond an argument");
    it.count = std::max(it.count, last + 1);
    return made;
  }
  bool is_input(uint32_t place) const { return place < model_.inputs.size(); }

  void add_call(const steps::Call& call) {
    const std::string name = op_label(call.op.opcode);
    if (!is_saved_op(call.op.opcode) || call.op.flags & PLUGRAD_ACCUMULATE)
      refuse("calls " + name + ", which has no meaning in a file: ops of a forward pass have");
    ModelOp op{call.op.opcode, {}, {}, attributes_of(call.op.opcode, call.attributes.data())};
    const auto spatial = static_cast<size_t>(std::max(0, call.views[0].rank - 2));
    for (auto& [key, list] : op.attributes.lists) {
      Shape some;
      for (size_t i = 0; i < std::min<size_t>(spatial, 3); ++i) some.push_back(list[static_cast<int>(i)]);
      list = some;
    }
    for (size_t i = 0; i < call.views.size(); ++i) {
      const plugrad_view& v = call.views[i];
      const uint32_t memory = call.memories[i];
      if (memory == kNever) {
        if (is_floating(v.dtype)) op.inputs.push_back({std::nullopt, std::bit_cast<double>(v.offset)});
        else op.inputs.push_back({std::nullopt, static_cast<int64_t>(v.offset)});
        continue;
      }
      ModelView made = view_of(memory, v, v.offset - pass_.memories[memory].base);
      if (i < call.op.outputs) op.outputs.push_back(std::move(made));
      else op.inputs.push_back({std::move(made), 0});
    }
    model_.ops.push_back(std::move(op));
  }

  // Memory left undefined by an op cannot be read: for example, attention's second result.
  void check_order() const {
    parsed_model(text_of(model_), [](const std::string& what) { refuse("cannot be saved: " + what); });
  }

  std::vector<Tensor> weights() {
    std::vector<Tensor> all(model_.memories.size());
    for (const auto& [place, memory] : sources_) {
      ModelMemory& it = model_.memories[place];
      Storage& storage = *pass_.memories[memory].storage;
      Ref<Impl> impl(new (local().objects.get()) Impl(*storage.device, Ref<Storage>::share(&storage)));
      impl->view = dense_view({it.count}, static_cast<uint8_t>(it.dtype), storage.device->info.alignment);
      impl->view.buffer = storage.buffer;
      impl->view.offset = pass_.memories[memory].base;
      all[place] = Tensor(std::move(impl));
    }
    return all;
  }

  const Recording::ForwardPass& pass_;
  ModelContents model_;
  std::vector<uint32_t> places_;          // by memory of the trace
  std::map<uint32_t, int64_t> first_;     // by memory: the start of an argument in it, in bytes
  std::map<uint32_t, uint32_t> sources_;  // weights: by place, the memory
};

// "[each,each]"
template <class All, class Text> std::string list_text(const All& all, Text text) {
  std::string joined;
  for (const auto& each : all) joined += (joined.empty() ? "" : ",") + text(each);
  return "[" + joined + "]";
}
std::string view_text(const ModelView& view) {
  return "[" + std::to_string(view.memory) + "," + std::to_string(view.offset) + "," + json_text(view.shape) + "," +
         json_text(view.strides) + "]";
}
std::string real_text(double number) { return nlohmann::json(number).dump(); }
std::string input_text(const ModelInput& input) {
  if (input.view) return view_text(*input.view);
  if (!input.number.floating()) return std::to_string(input.number.integer());
  const double real = input.number.real();  // JSON has no infinity
  return std::isfinite(real) ? real_text(real) : json_text(real > 0 ? "inf" : real < 0 ? "-inf" : "nan");
}
std::string attributes_text(const ModelAttributes& attributes) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, number] : attributes.numbers) texts[name] = real_text(number);
  for (const auto& [name, list] : attributes.lists) texts[name] = json_text(list);
  std::string all;
  for (const auto& [name, text] : texts) all += (all.empty() ? "" : ",") + json_text(name) + ":" + text;
  return "{" + all + "}";
}
std::string call_text(const ModelOp& op) {
  const bool has_attributes = !op.attributes.numbers.empty() || !op.attributes.lists.empty();
  return (has_attributes ? "{\"attributes\":" + attributes_text(op.attributes) + "," : std::string("{")) +
         "\"in\":" + list_text(op.inputs, input_text) + ",\"op\":" + json_text(op_label(op.opcode)) +
         ",\"out\":" + list_text(op.outputs, view_text) + "}";
}
}  // namespace

std::string text_of(const ModelContents& model) {
  const auto memory = [](const ModelMemory& each) {
    return "[" + json_text(dtype_name(each.dtype)) + "," + std::to_string(each.count) + "," + json_text(each.weight) + "]";
  };
  const auto input = [](const ModelView& each) {
    return "[" + std::to_string(each.memory) + "," + json_text(each.shape) + "]";
  };
  return "{\"calls\":" + list_text(model.ops, call_text) + ",\"inputs\":" + list_text(model.inputs, input) +
         ",\"memories\":" + list_text(model.memories, memory) + ",\"outputs\":" + list_text(model.outputs, view_text) +
         ",\"version\":" + std::to_string(kModelVersion) + "}";
}
}  // namespace io

void save_model(const CompiledStep& step, const std::string& path) {
  const std::shared_ptr<const Recording> recording = only_recording(step);
  const Recording::ForwardPass pass = recording->forward_pass();
  const io::StoredModel stored = io::Saver(pass).stored();
  if (path.ends_with(".onnx")) return io::write_onnx(stored, path);
  std::map<std::string, Tensor> weights;
  for (size_t i = 0; i < stored.weights.size(); ++i)
    if (stored.weights[i].defined()) weights[stored.contents.memories[i].weight] = stored.weights[i];
  io::write_safetensors(path, weights, {{io::kModelKey, io::text_of(stored.contents)}});
}

}  // namespace plugrad
