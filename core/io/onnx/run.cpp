#include <core/io/onnx/run.hpp>
#include <core/io/quote.hpp>
#include <core/runtime/memory/budget.hpp>
#include <plugrad/runtime/cancel.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <optional>

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

LoadedModel::LoadedModel(const std::string& path, Device where, bool mapped)
    : file(path), model(build_model(file, read_model_message(file))), device(where), mmap(mapped), values(model) {}

Value Run::get(ValueId id) {
  if (id == kAbsent) return {};
  const auto initializer = loaded_.model.initializers.find(id);
  if (initializer == loaded_.model.initializers.end()) return frame_[static_cast<size_t>(id)];
  return loaded_.values.initializer(id, [&] {
    const BudgetScope unbounded(nullptr);
    const TensorMessage& message = initializer->second;
    Value value(read_tensor(loaded_.file, message, device(), loaded_.mmap), static_cast<ElementType>(message.type));
    value.level = Level::file;
    value.host = std::make_shared<HostElements>();
    return value;
  });
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
  throw_if_cancelled();
  Values outputs;
  if (std::optional<Values> kept = loaded_.values.results(node)) {
    outputs = std::move(*kept);
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
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i] != kAbsent) level = std::max(level, inputs[i].level);
  if (kind == Kind::shape && level == Level::data) level = Level::shapes;
  if (kind == Kind::whole) {
    Values moved = computed(node, std::move(inputs), false);
    for (Value& each : moved) {
      if (!each.tensor.defined()) each.level = level;
      each = raised(std::move(each), level);
    }
    return moved;
  }
  if (kind == Kind::flow || level == Level::data) return computed(node, std::move(inputs), false);
  if (level == Level::shapes && !made_) return plan_.results.at(next_result_++);
  if (recording_) throw Error(Code::internal, "a recording met a constant that was not planned");
  std::optional<BudgetScope> unbounded;
  if (level == Level::file) unbounded.emplace(nullptr);
  Values outputs = computed(node, std::move(inputs), true);
  note_host(outputs, level);
  if (level == Level::file) return loaded_.values.keep(node, std::move(outputs));
  made_->results.push_back(outputs);
  return outputs;
}

Values Run::computed(const Node& node, Values inputs, bool constant) {
  const auto named = [&](Code code, const std::string& what) {
    return Error(code, "[" + loaded_.file.path() + "] node " + quote(node.name) + " (" + node.op_name + " of " +
                           input_texts(inputs) + "): " + what);
  };
  next_prepared_[node.number] = 0;
  try {
    Call call(*this, node, inputs, constant);
    Values outputs = node.op->multiple ? node.op->multiple(call) : Values{node.op->single(call)};
    if (node.domain == "com.microsoft") call.refuse_unread_attributes();
    return outputs;
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("[" + loaded_.file.path() + "] node ")) throw;
    throw named(error.code(), error.what());
  } catch (const std::out_of_range&) {
    throw named(Code::invalid, "an input or an attribute has too few numbers");
  } catch (const std::length_error&) {
    throw named(Code::invalid, "an input has too few axes, or a size is negative or too large");
  } catch (const std::bad_alloc&) {
    throw named(Code::out_of_memory, "the host has too little memory");
  }
}

Tensor Run::made(const std::function<Tensor()>& make) {
  if (!made_) return plan_.made.at(next_made_++);
  if (recording_) throw Error(Code::internal, "a recording met a tensor that was not planned");
  made_->made.push_back(make());
  return plan_.made.back();
}

Tensor Run::prepared(const Node& node, const std::function<Tensor()>& make) {
  const BudgetScope unbounded(nullptr);
  Tensor tensor = loaded_.values.prepared(node, next_prepared_[node.number]++, recording_ ? nullptr : make);
  if (!tensor.defined()) throw Error(Code::internal, "a recording met a weight that was not planned");
  return tensor;
}

void Run::note_read(const Node& node) {
  const std::string text = node.op_name + " " + quote(node.name);
  if (recording_) throw Error(Code::unsupported, text + " reads elements that only the run knows");
  if (made_ && std::ranges::find(plan_.reads, text) == plan_.reads.end()) made_->reads.push_back(text);
}

}  // namespace plugrad::io::onnx
