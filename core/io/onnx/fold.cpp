#include <core/io/onnx/graph.hpp>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace plugrad::io::onnx {
namespace {

// The number of nodes that use each value, inner graphs and outputs included.
void count_uses(const Graph& graph, std::unordered_map<ValueId, int>& uses) {
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) ++uses[id];
    for (const auto& [name, inner] : node.graphs) count_uses(*inner, uses);
  }
  for (const ValueId id : graph.outputs) ++uses[id];
}

Node derived_node(const Node& origin, const std::string& op, std::vector<ValueId> inputs, ValueId output, Model& model) {
  Node node;
  node.op = find_operator(kOwnDomain, op);
  node.op_name = op;
  node.name = origin.name;
  node.domain = kOwnDomain;
  node.number = model.nodes++;
  node.attributes = origin.attributes;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

// Values that the file determines: initializers, and results of nodes that use nothing else.
std::unordered_set<ValueId> constants_of(const Model& model) {
  std::unordered_set<ValueId> all;
  for (const auto& [id, message] : model.initializers) all.insert(id);
  for (const Node& node : model.graph.nodes) {
    const auto is_constant = [&](ValueId id) { return id == kAbsent || all.contains(id); };
    if (node.op->kind == Operator::Kind::plain && std::ranges::all_of(node.inputs, is_constant))
      all.insert(node.outputs.begin(), node.outputs.end());
  }
  return all;
}

bool folds(const Node& conv, const Node& norm, const std::unordered_set<ValueId>& constants,
           const std::unordered_map<ValueId, int>& uses) {
  if (conv.op_name != "Conv" || norm.op_name != "BatchNormalization" || !conv.domain.empty() || !norm.domain.empty())
    return false;
  if (norm.inputs.size() != 5 || norm.outputs.size() != 1 || conv.outputs.empty() || norm.inputs[0] != conv.outputs[0])
    return false;
  for (const AttributeMessage& each : norm.attributes)
    if (each.name == "training_mode" && each.integer) return false;
  if (uses.at(conv.outputs[0]) != 1) return false;
  for (size_t i = 1; i < norm.inputs.size(); ++i)
    if (!constants.contains(norm.inputs[i])) return false;
  for (size_t i = 1; i < conv.inputs.size(); ++i)
    if (conv.inputs[i] != kAbsent && !constants.contains(conv.inputs[i])) return false;
  return conv.inputs.size() >= 2;
}
}  // namespace

void fold_batch_norms(Model& model) {
  std::unordered_map<ValueId, int> uses;
  count_uses(model.graph, uses);
  const std::unordered_set<ValueId> constants = constants_of(model);
  std::vector<Node> all;
  std::unordered_map<ValueId, size_t> convolutions;  // by their output
  for (Node& node : model.graph.nodes) {
    const auto found = node.inputs.empty() ? convolutions.end() : convolutions.find(node.inputs[0]);
    if (found == convolutions.end() || !folds(all[found->second], node, constants, uses)) {
      if (node.op_name == "Conv" && !node.outputs.empty() && node.outputs[0] != kAbsent)
        convolutions[node.outputs[0]] = all.size();
      all.push_back(std::move(node));
      continue;
    }
    // The convolution moves to the place of the norm: its weights are computed just before.
    Node conv = std::move(all[found->second]);
    all[found->second].op = nullptr;
    const ValueId weight = static_cast<ValueId>(model.values++), bias = static_cast<ValueId>(model.values++);
    const auto& n = node.inputs;
    all.push_back(derived_node(node, "FoldedWeight", {conv.inputs[1], n[1], n[4]}, weight, model));
    const ValueId old = conv.inputs.size() > 2 ? conv.inputs[2] : kAbsent;
    all.push_back(derived_node(node, "FoldedBias", {n[1], n[2], n[3], n[4], old}, bias, model));
    conv.inputs = {conv.inputs[0], weight, bias};
    conv.outputs = node.outputs;
    convolutions.erase(found);
    all.push_back(std::move(conv));
  }
  std::erase_if(all, [](const Node& node) { return !node.op; });
  model.graph.nodes = std::move(all);
}

namespace {

bool is_plain(const Node& node, const std::string& op) {
  const auto known = [](const AttributeMessage& each) { return each.name == "axis" || each.name == "saturate"; };
  return node.domain.empty() && node.op_name == op && std::ranges::all_of(node.attributes, known);
}

// Whether a quantisation and a dequantisation have the same scale, zero point and axis.
bool is_pair(const Node& to, const Node& from) {
  const auto axis = [](const Node& node) {
    for (const AttributeMessage& each : node.attributes)
      if (each.name == "axis") return each.integer;
    return int64_t{1};
  };
  return to.inputs.size() >= 2 &&
         std::equal(to.inputs.begin() + 1, to.inputs.end(), from.inputs.begin() + 1, from.inputs.end()) &&
         axis(to) == axis(from);
}
}  // namespace

void fuse_quantization_pairs(Model& model) {
  std::unordered_map<ValueId, int> uses;
  count_uses(model.graph, uses);
  std::unordered_map<ValueId, size_t> quantized;  // by the codes
  std::vector<Node>& nodes = model.graph.nodes;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (is_plain(nodes[i], "QuantizeLinear") && nodes[i].outputs.size() == 1 && nodes[i].outputs[0] != kAbsent)
      quantized[nodes[i].outputs[0]] = i;
  for (Node& node : nodes) {
    if (!is_plain(node, "DequantizeLinear") || node.inputs.size() < 2) continue;
    const auto found = quantized.find(node.inputs[0]);
    if (found == quantized.end() || !is_pair(nodes[found->second], node)) continue;
    --uses[node.inputs[0]];
    node.inputs[0] = nodes[found->second].inputs[0];
    node.op = find_operator(kOwnDomain, "FakeQuantize");
  }
  std::vector<Node> kept;
  for (Node& node : nodes) {
    const bool unused = is_plain(node, "QuantizeLinear") && node.outputs.size() == 1 && !uses[node.outputs[0]];
    if (!unused) kept.push_back(std::move(node));
  }
  nodes = std::move(kept);
}

}  // namespace plugrad::io::onnx
