#include <core/io/onnx/lanes.hpp>
#include <core/io/onnx/plans.hpp>
#include <core/io/onnx/run.hpp>
#include <core/io/quote.hpp>
#include <core/runtime/memory/blocks.hpp>
#include <core/runtime/memory/budget.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/onnx.hpp>
#include <plugrad/io/saved_model.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/steps/compile.hpp>

#include <algorithm>

namespace plugrad::io {

namespace onnx {
namespace {

std::string type_text(const TypeMessage& type) {
  using Kind = TypeMessage::Kind;
  const std::string inner = type.inner.empty() ? "unknown values" : type_text(type.inner[0]);
  switch (type.kind) {
    case Kind::tensor: return element_name(static_cast<ElementType>(type.element));
    case Kind::sequence: return "sequence of " + inner;
    case Kind::optional: return "optional " + inner;
    default: return "unknown";
  }
}

OnnxDeclaration declared(const ValueMessage& value) {
  OnnxDeclaration made;
  made.name = value.name;
  made.type = type_text(value.type);
  if (value.type.kind == TypeMessage::Kind::tensor) made.dtype = carrier(static_cast<ElementType>(value.type.element));
  if (!value.type.has_shape) return made;
  made.shape.emplace();
  for (const TypeMessage::Extent& each : value.type.shape) {
    const bool known = each.value && *each.value >= 0;  // some exporters write -1 for unknown extents
    made.shape->push_back({known ? each.value : std::nullopt, each.symbol == "?" ? "" : each.symbol});
  }
  return made;
}

// From now on the values are the caller's, and count for no budget.
void leave_budget(const Values& values) {
  for (const Value& each : values) {
    if (each.sequence) leave_budget(*each.sequence);
    Storage* const storage = each.tensor.defined() ? each.tensor.impl().storage.get() : nullptr;
    if (storage && storage->large && !storage->imported) plugrad::leave_budget(static_cast<Block&>(*storage));
  }
}

// The type of the tensors in sequences and optionals.
const TypeMessage& innermost_of(const TypeMessage& type) { return type.inner.empty() ? type : innermost_of(type.inner[0]); }
ElementType element_of(const TypeMessage& type) { return static_cast<ElementType>(innermost_of(type).element); }
}  // namespace
}  // namespace onnx

std::string OnnxDeclaration::text() const {
  std::string text = name + ": " + type;
  if (!shape) return text;
  text += " (";
  for (size_t i = 0; i < shape->size(); ++i) {
    const Extent& each = (*shape)[i];
    text += (i ? ", " : "") + (each.value ? std::to_string(*each.value) : each.symbol.empty() ? "?" : each.symbol);
  }
  return text + ")";
}

struct [[gnu::visibility("hidden")]] OnnxModel::State {
  State(const std::string& path, const OnnxOptions& options)
      : loaded(path, options.device, options.mmap), record(options.record),
        budget(options.memory ? std::make_shared<Budget>("'" + path + "'", options.memory) : nullptr), lanes(options.lanes) {
    if (!options.lanes) fail("cannot run in 0 lanes: at least 1 is needed");
    const auto& messages = loaded.model.inputs;
    for (size_t i = 0; i < messages.size(); ++i) {
      const auto bound = options.bind.find(messages[i].name);
      if (bound == options.bind.end()) {
        free.push_back(i);
        inputs.push_back(onnx::declared(messages[i]));
        tensors.push_back(onnx::declared({messages[i].name, onnx::innermost_of(messages[i].type)}));
      } else {
        bind(i, bound->second);
      }
    }
    for (const auto& [name, value] : options.bind)
      if (std::ranges::none_of(messages, [&](const auto& each) { return each.name == name; }))
        fail("has no input " + quote(name) + " to bind; its inputs are " + names(messages));
    for (const onnx::ValueMessage& each : loaded.model.outputs) outputs.push_back(onnx::declared(each));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::invalid, "[" + loaded.file.path() + "] " + what);
  }
  template <class List> static std::string names(const List& all) {
    std::string text;
    for (const auto& each : all) text += (text.empty() ? "" : ", ") + quote(each.name);
    return text.empty() ? "none" : text;
  }

  void bind(size_t i, const Tensor& tensor) {
    check_tensor(onnx::declared(loaded.model.inputs[i]), tensor, nullptr);
    onnx::Value value(clone(tensor), onnx::element_of(loaded.model.inputs[i].type));
    value.level = onnx::Level::file;
    value.host = std::make_shared<onnx::HostElements>();
    bound.emplace_back(loaded.model.graph.inputs[i], std::move(value));
  }

  using Symbols = std::map<std::string, int64_t>;
  void check_tensor(const OnnxDeclaration& input, const Tensor& tensor, Symbols* symbols) const {
    if (!tensor.defined()) fail("input " + quote(input.name) + " is not given");
    const auto differs = [&](const std::string& how = "") {
      fail("input " + input.text() + " is expected, not " + dtype_name(tensor.dtype()) + " " + tensor.shape().text() + how);
    };
    if (tensor.device() != loaded.device)
      fail("input " + quote(input.name) + " is on " + tensor.device().name() + ", the model on " + loaded.device.name());
    if (input.dtype && tensor.dtype() != *input.dtype) differs();
    if (!input.shape) return;
    if (static_cast<size_t>(tensor.rank()) != input.shape->size()) differs();
    for (size_t d = 0; d < input.shape->size(); ++d) {
      const auto& extent = (*input.shape)[d];
      const int64_t found = tensor.size(static_cast<int>(d));
      if (extent.value && *extent.value != found) differs();
      if (extent.value || extent.symbol.empty() || !symbols) continue;
      const auto [at, fresh] = symbols->try_emplace(extent.symbol, found);
      if (!fresh && at->second != found)
        differs(": " + extent.symbol + " is " + std::to_string(at->second) + " in another input");
    }
  }

  onnx::Values values_of(const std::vector<OnnxValue>& given) const {
    if (given.size() != inputs.size())
      fail(std::to_string(inputs.size()) + " inputs are expected, not " + std::to_string(given.size()) + ": " +
           names(inputs));
    onnx::Values values;
    Symbols symbols;
    for (size_t i = 0; i < given.size(); ++i) {
      const onnx::TypeMessage& type = loaded.model.inputs[free[i]].type;
      const onnx::ElementType element = onnx::element_of(type);
      if (const auto* tensor = std::get_if<Tensor>(&given[i])) {
        check_tensor(tensors[i], *tensor, &symbols);
        values.emplace_back(*tensor, element);
      } else if (const auto* all = std::get_if<std::vector<Tensor>>(&given[i])) {
        onnx::Values parts;
        for (const Tensor& each : *all) {
          check_tensor(tensors[i], each, nullptr);
          parts.emplace_back(each, element);
        }
        values.emplace_back(std::move(parts));
      } else if (type.kind == onnx::TypeMessage::Kind::optional) {
        values.emplace_back();
      } else {
        fail("input " + inputs[i].text() + " is not given");
      }
    }
    return values;
  }

  onnx::Values execute(const onnx::Values& values, onnx::Run run) {
    const NoGrad no_grad;
    for (const auto& [id, value] : bound) run.set(id, value);
    for (size_t i = 0; i < values.size(); ++i) run.set(loaded.model.graph.inputs[free[i]], values[i]);
    onnx::Values results = run.run(loaded.model.graph), others = values;
    for (const onnx::Values& each : run.plan().results) others.insert(others.end(), each.begin(), each.end());
    others.insert(others.end(), run.plan().made.begin(), run.plan().made.end());
    for (onnx::Value& each : results) {
      each = owned(std::move(each), others);
      others.push_back(each);  // two outputs are not in the same memory either
    }
    return results;
  }
  // The value in memory of its own: neither a constant's nor that of the others, which the caller might write to.
  onnx::Value owned(onnx::Value value, const onnx::Values& others) const {
    if (value.sequence) {
      onnx::Values elements;
      for (const onnx::Value& each : *value.sequence) elements.push_back(owned(each, others));
      return onnx::Value(std::move(elements));
    }
    if (!value.tensor.defined()) return value;
    const Storage* storage = value.tensor.impl().storage.get();
    const bool shared = value.level != onnx::Level::data || loaded.values.holds(storage) ||
                        std::ranges::any_of(others, [&](const auto& each) { return onnx::lies_in(each, storage); });
    if (shared) value.tensor = clone(value.tensor);
    return value;
  }

  // Runs op by op and keeps what the shapes determine.
  onnx::Values plan_and_run(const onnx::Values& values, const std::string& key) {
    onnx::Plan plan;
    onnx::Values results = execute(values, onnx::Run(loaded, plan));
    onnx::KeptPlan fresh{key, {}, {}};
    for (const std::string& each : plan.reads)
      fresh.unrecordable += (fresh.unrecordable.empty() ? "elements that only the run knows are read by " : ", ") + each;
    if (std::ranges::any_of(values, [](const auto& each) { return !each.tensor.defined(); }))
      fresh.unrecordable = "an input is not a tensor";
    if (std::ranges::any_of(results, [](const auto& each) { return !each.tensor.defined(); }))
      fresh.unrecordable = "an output is not a tensor";
    if (plan.reads.empty()) fresh.plan = std::move(plan);
    plans.add(std::move(fresh));
    return results;
  }

  onnx::Values run_by_op(const onnx::Values& values, const onnx::KeptPlan& kept) {
    onnx::Plan once;
    return execute(values, kept.plan ? onnx::Run(loaded, *kept.plan, false) : onnx::Run(loaded, once));
  }

  onnx::Values recorded(const onnx::Values& values, const onnx::KeptPlan& kept, const CompiledStep& with) {
    std::vector<Tensor> arguments;
    for (const onnx::Value& each : values) arguments.push_back(each.tensor);
    const auto f = [&](const std::vector<Tensor>& tensors) {
      onnx::Values own = values;
      for (size_t i = 0; i < own.size(); ++i) own[i].tensor = tensors[i];
      StepResults results;
      for (const onnx::Value& each : execute(own, onnx::Run(loaded, *kept.plan, true)))
        results.tensors.push_back(each.tensor);
      return results;
    };
    onnx::Values results;
    for (const Tensor& each : with.call(arguments, kept.key, f).tensors) results.emplace_back(each);
    return results;
  }

  onnx::Values call(const onnx::Values& values) {
    const std::string key = onnx::key_text(values);
    const BudgetScope scope(budget);
    onnx::Values results = lanes.run(key, [&](const CompiledStep& step) {
      try {
        return call_in_lane(values, key, step);
      } catch (const Error& error) {
        if (error.code() != Code::out_of_memory || scope.is_hopeless()) throw;
      }
      plans.drop_others(key);
      lanes.drop_recordings(step);
      return call_by_op(values, key);
    });
    onnx::leave_budget(results);
    return results;
  }
  onnx::Values call_by_op(const onnx::Values& values, const std::string& key) {
    const std::shared_ptr<const onnx::KeptPlan> kept = plans.find(key);
    return kept ? run_by_op(values, *kept) : plan_and_run(values, key);
  }
  onnx::Values call_in_lane(const onnx::Values& values, const std::string& key, const CompiledStep& step) {
    const std::shared_ptr<const onnx::KeptPlan> kept = plans.find(key);
    if (!kept || !record || !kept->unrecordable.empty()) return call_by_op(values, key);
    std::string why;
    try {
      return recorded(values, *kept, step);
    } catch (const Error& error) {
      if (error.code() != Code::invalid && error.code() != Code::unsupported) throw;
      why = error.what();
    }
    onnx::Values results = run_by_op(values, *kept);  // throws if the inputs are at fault
    plans.refuse(key, why);
    return results;
  }

  onnx::LoadedModel loaded;
  bool record;
  const std::shared_ptr<Budget> budget;  // null without a bound
  onnx::Lanes lanes;
  std::vector<size_t> free;  // the numbers of the inputs that calls give
  std::vector<OnnxDeclaration> inputs, outputs;
  std::vector<OnnxDeclaration> tensors;  // of inputs: the tensors in sequences and optionals
  std::vector<std::pair<onnx::ValueId, onnx::Value>> bound;
  onnx::Plans plans;
};

OnnxModel::OnnxModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

const std::vector<OnnxDeclaration>& OnnxModel::inputs() const { return state_->inputs; }
const std::vector<OnnxDeclaration>& OnnxModel::outputs() const { return state_->outputs; }
Device OnnxModel::device() const { return state_->loaded.device; }

std::vector<OnnxValue> OnnxModel::run(const std::vector<OnnxValue>& inputs) const {
  std::vector<OnnxValue> results;
  for (const onnx::Value& each : state_->call(state_->values_of(inputs))) {
    if (each.sequence) {
      std::vector<Tensor> all;
      for (const onnx::Value& part : *each.sequence) all.push_back(part.tensor);
      results.emplace_back(std::move(all));
    } else if (each.tensor.defined()) {
      results.emplace_back(each.tensor);
    } else {
      results.emplace_back();
    }
  }
  return results;
}

std::vector<OnnxValue> OnnxModel::run(const std::map<std::string, OnnxValue>& inputs) const {
  std::vector<OnnxValue> ordered;
  size_t used = 0;
  for (const OnnxDeclaration& each : state_->inputs) {
    const auto found = inputs.find(each.name);
    used += found != inputs.end();
    if (found != inputs.end()) ordered.push_back(found->second);
    else if (each.type.starts_with("optional")) ordered.emplace_back();
    else state_->fail("input " + each.text() + " is not given");
  }
  if (used != inputs.size())
    for (const auto& [name, value] : inputs)
      if (std::ranges::none_of(state_->inputs, [&](const auto& each) { return each.name == name; }))
        state_->fail("has no input " + quote(name) + "; its inputs are " + State::names(state_->inputs));
  return run(ordered);
}

std::vector<Tensor> OnnxModel::operator()(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> tensors;
  for (OnnxValue& each : run(std::vector<OnnxValue>(inputs.begin(), inputs.end()))) {
    Tensor* tensor = std::get_if<Tensor>(&each);
    if (!tensor) state_->fail("has an output that is not a tensor: call run");
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

void OnnxModel::save(const std::string& path, const std::vector<Tensor>& inputs) const {
  const onnx::Values values = state_->values_of(std::vector<OnnxValue>(inputs.begin(), inputs.end()));
  const std::string key = onnx::key_text(values);
  std::shared_ptr<const onnx::KeptPlan> kept;
  while (!(kept = state_->plans.find(key))) state_->plan_and_run(values, key);
  if (!kept->unrecordable.empty())
    throw Error(Code::unsupported, "[" + state_->loaded.file.path() + "] cannot be recorded: " + kept->unrecordable);
  const CompiledStep step({.name = "onnx"});
  state_->recorded(values, *kept, step);
  save_model(step, path);
}

std::string OnnxModel::explain() const { return state_->lanes.explain() + state_->plans.explain(); }

OnnxModel load_onnx(const std::string& path, const OnnxOptions& options) {
  return OnnxModel(std::make_unique<OnnxModel::State>(path, options));
}

OnnxValue read_onnx_value(const std::string& path, const OnnxDeclaration& declaration, Device device) {
  const OpenedFile file(path);
  const bool optional = declaration.type.starts_with("optional");
  if (!optional && !declaration.type.starts_with("sequence"))
    return onnx::read_tensor(file, onnx::read_tensor_message(file), device);
  std::vector<Tensor> all;
  const onnx::ListMessage list = onnx::read_list_message(file, optional);
  for (const onnx::TensorMessage& each : list.tensors) all.push_back(onnx::read_tensor(file, each, device));
  if (list.is_sequence) return all;
  return all.empty() ? OnnxValue() : OnnxValue(all[0]);
}

}  // namespace plugrad::io
