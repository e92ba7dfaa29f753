#include <core/io/onnx/run.hpp>
#include <core/io/quote.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>

namespace plugrad::io::onnx {
namespace {

std::string input_texts(const Values& inputs) {
  std::string all;
  for (const Value& each : inputs) {
    all += all.empty() ? "" : ", ";
    if (each.sequence) all += "a sequence of " + std::to_string(each.sequence->size());
    else if (each.tensor.defined()) all += element_name(each.type) + " " + each.tensor.shape().text();
    else all += "nothing";
  }
  return all;
}

void note_host(Values& all, Level level) {
  for (Value& each : all) {
    each.level = level;
    if (!each.host) each.host = std::make_shared<HostElements>();
  }
}
}  // namespace

Run::Run(LoadedModel& loaded, Plan& plan, bool recording)
    : loaded_(loaded), plan_(plan), recording_(recording), frame_(loaded.model.values) {
  FileValues& values = loaded.values;
  values.initializers.resize(loaded.model.values);
  values.results.resize(loaded.model.nodes);
  values.prepared.resize(loaded.model.nodes);
  values.has_results.resize(loaded.model.nodes);
}

const Value& Run::initializer(ValueId id) {
  Value& value = loaded_.values.initializers[static_cast<size_t>(id)];
  if (!value.present()) {
    const TensorMessage& message = loaded_.model.initializers.at(id);
    value = Value(read_tensor(loaded_.file, message, device()), static_cast<ElementType>(message.type));
    value.level = Level::file;
    value.host = std::make_shared<HostElements>();
  }
  return value;
}

const Value& Run::get(ValueId id) {
  static const Value absent;
  if (id == kAbsent) return absent;
  if (loaded_.model.initializers.contains(id)) return initializer(id);
  return frame_[static_cast<size_t>(id)];
}

Values Run::run(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    execute(node);
    for (const ValueId id : node.dead) set(id, {});
  }
  Values outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(get(id));
  return outputs;
}

void Run::execute(const Node& node) {
  const size_t number = node.number;
  Values outputs;
  if (loaded_.values.has_results[number]) {
    outputs = loaded_.values.results[number];
  } else {
    Values inputs;
    for (const ValueId id : node.inputs) inputs.push_back(get(id));
    outputs = results(node, std::move(inputs));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kAbsent) set(node.outputs[i], i < outputs.size() ? std::move(outputs[i]) : Value());
}

Values Run::results(const Node& node, Values inputs) {
  using Kind = Operator::Kind;
  const Kind kind = node.op->kind;
  Level level = kind == Kind::random ? Level::data : Level::file;
  for (const Value& each : inputs)
    if (each.present()) level = std::max(level, each.sequence ? Level::data : each.level);
  if (kind == Kind::shape && level == Level::data) level = Level::shapes;
  if (kind == Kind::flow || kind == Kind::whole || level == Level::data) return computed(node, std::move(inputs), false);
  if (level == Level::shapes && plan_.complete) return plan_.results.at(next_result_++);
  if (recording_) throw Error(Code::internal, "a recording met a constant that was not planned");
  Values outputs = computed(node, std::move(inputs), true);
  note_host(outputs, level);
  if (level == Level::shapes) {
    plan_.results.push_back(outputs);
  } else {
    loaded_.values.results[node.number] = outputs;
    loaded_.values.has_results[node.number] = 1;
  }
  return outputs;
}

Values Run::computed(const Node& node, Values inputs, bool constant) {
  const auto named = [&](Code code, const std::string& what) {
    return Error(code, "[" + loaded_.file.path() + "] node " + quote(node.name) + " (" + node.op_name + " of " +
                           input_texts(inputs) + "): " + what);
  };
  next_prepared_.resize(loaded_.model.nodes);
  next_prepared_[node.number] = 0;
  try {
    Call call(*this, node, inputs, constant);
    if (node.op->multiple) return node.op->multiple(call);
    Values outputs;
    outputs.push_back(node.op->single(call));
    return outputs;
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("[" + loaded_.file.path() + "] node ")) throw;
    throw named(error.code(), error.what());
  } catch (const std::out_of_range&) {
    throw named(Code::invalid, "an input or an attribute has too few numbers");
  }
}

Tensor Run::made(const std::function<Tensor()>& make) {
  if (plan_.complete) return plan_.made.at(next_made_++);
  if (recording_) throw Error(Code::internal, "a recording met a tensor that was not planned");
  plan_.made.push_back(make());
  return plan_.made.back();
}

Tensor Run::prepared(const Node& node, const std::function<Tensor()>& make) {
  std::vector<Tensor>& all = loaded_.values.prepared[node.number];
  const size_t at = next_prepared_[node.number]++;
  if (at < all.size()) return all[at];
  if (recording_) throw Error(Code::internal, "a recording met a weight that was not planned");
  all.push_back(make());
  return all.back();
}

void Run::note_read(const Node& node) {
  const std::string text = node.op_name + " " + quote(node.name);
  if (recording_) throw Error(Code::unsupported, text + " reads elements that only the run knows");
  if (std::ranges::find(plan_.reads, text) == plan_.reads.end()) plan_.reads.push_back(text);
}

namespace {
// Marks the values that nodes without kept results, and outputs, use.
void mark_needed(const LoadedModel& loaded, const Graph& graph, std::vector<uint8_t>& needed) {
  for (const Node& node : graph.nodes) {
    for (const auto& [name, inner] : node.graphs) mark_needed(loaded, *inner, needed);
    if (loaded.values.has_results[node.number]) continue;
    for (const ValueId id : node.inputs)
      if (id != kAbsent) needed[static_cast<size_t>(id)] = 1;
  }
  for (const ValueId id : graph.outputs)
    if (id != kAbsent) needed[static_cast<size_t>(id)] = 1;
}

void release(LoadedModel& loaded, const Graph& graph, const std::vector<uint8_t>& needed) {
  for (const Node& node : graph.nodes) {
    for (const auto& [name, inner] : node.graphs) release(loaded, *inner, needed);
    if (!loaded.values.has_results[node.number]) continue;
    Values& results = loaded.values.results[node.number];
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId id = i < node.outputs.size() ? node.outputs[i] : kAbsent;
      if (id == kAbsent || !needed[static_cast<size_t>(id)]) results[i] = {};
    }
  }
}
}  // namespace

void release_used_constants(LoadedModel& loaded) {
  std::vector<uint8_t> needed(loaded.model.values);
  mark_needed(loaded, loaded.model.graph, needed);
  release(loaded, loaded.model.graph, needed);
  for (size_t id = 0; id < needed.size(); ++id)
    if (!needed[id]) loaded.values.initializers[id] = {};
}

}  // namespace plugrad::io::onnx
