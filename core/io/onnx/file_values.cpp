#include <core/io/onnx/file_values.hpp>
#include <core/tensor/impl.hpp>

#include <algorithm>

namespace plugrad::io::onnx {
namespace {

void count_users(const Graph& graph, std::vector<uint32_t>& users) {
  const auto count = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids)
      if (id != kAbsent) ++users[static_cast<size_t>(id)];
  };
  for (const Node& node : graph.nodes) {
    count(node.inputs);
    for (const auto& [name, inner] : node.graphs) count_users(*inner, users);
  }
  count(graph.outputs);
}
}  // namespace

bool lies_in(const Value& value, const Storage* storage) {
  if (value.sequence) return std::ranges::any_of(*value.sequence, [&](const Value& each) { return lies_in(each, storage); });
  return value.tensor.defined() && value.tensor.impl().storage.get() == storage;
}

FileValues::FileValues(const Model& model)
    : model_(model), initializers_(model.values), users_(model.values), nodes_(model.nodes) {
  count_users(model.graph, users_);
}

Value FileValues::initializer(ValueId id, const std::function<Value()>& read) {
  const std::lock_guard lock(mutex_);
  Value& kept = initializers_[static_cast<size_t>(id)];
  if (kept.present()) return kept;
  Value value = read();
  if (users_[static_cast<size_t>(id)]) kept = value;  // else another run has just kept the results of its last user
  return value;
}

std::optional<Values> FileValues::results(const Node& node) const {
  const std::lock_guard lock(mutex_);
  return nodes_[node.number].results;
}

Values FileValues::keep(const Node& node, Values outputs) {
  const std::lock_guard lock(mutex_);
  std::optional<Values>& kept = nodes_[node.number].results;
  if (kept) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if ((*kept)[i].present()) outputs[i] = (*kept)[i];
    return outputs;
  }
  kept = outputs;
  for (const ValueId id : node.inputs) {
    if (id == kAbsent || --users_[static_cast<size_t>(id)]) continue;
    initializers_[static_cast<size_t>(id)] = {};
    const auto producer = model_.producers.find(id);
    if (producer == model_.producers.end()) continue;
    const auto [number, result] = producer->second;
    std::optional<Values>& results = nodes_[number].results;
    if (results && result < results->size()) (*results)[result] = {};
  }
  return outputs;
}

Tensor FileValues::prepared(const Node& node, size_t at, const std::function<Tensor()>& make) {
  const auto found = [&]() -> Tensor {
    const std::lock_guard lock(mutex_);
    const std::vector<Tensor>& all = nodes_[node.number].prepared;
    return at < all.size() ? all[at] : Tensor();
  };
  if (Tensor tensor = found(); tensor.defined() || !make) return tensor;
  Tensor made = make();
  const std::lock_guard lock(mutex_);
  std::vector<Tensor>& all = nodes_[node.number].prepared;
  if (at == all.size()) all.push_back(std::move(made));  // else another run was faster
  return all.at(at);
}

bool FileValues::holds(const Storage* storage) const {
  const auto any = [&](const Values& all) {
    return std::ranges::any_of(all, [&](const Value& each) { return lies_in(each, storage); });
  };
  const std::lock_guard lock(mutex_);
  return any(initializers_) ||
         std::ranges::any_of(nodes_, [&](const ByNode& each) { return each.results && any(*each.results); });
}

}  // namespace plugrad::io::onnx
