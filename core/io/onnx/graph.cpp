#include <core/io/onnx/graph.hpp>
#include <core/io/quote.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <map>
#include <unordered_set>

namespace plugrad::io::onnx {
namespace {

constexpr size_t kMostNodes = 1'000'000, kMostNamedNodes = 3;
constexpr int kMostCalls = 64;

using Opsets = std::map<std::string, int64_t>;
std::string plain_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

Opsets opsets_of(const std::vector<OpsetMessage>& messages) {
  Opsets all;
  for (const OpsetMessage& each : messages) all[plain_domain(each.domain)] = each.version;
  return all;
}

// The names that are visible in a graph; the inner graphs of control flow also see the outer names.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, ValueId> values = {};
};

// What the nodes of a graph or a function's body refer to.
struct Context {
  const Opsets& opsets;
  const std::map<std::string, const AttributeMessage*>* bound = nullptr;  // the function's attributes
  int depth = 0;
};

class Builder {
 public:
  Builder(const OpenedFile& file, ModelMessage& message) : file_(file), message_(message) {
    for (const FunctionMessage& each : message.functions) functions_[key(each.domain, each.name, each.overload)] = &each;
  }

  Model build() {
    const Opsets opsets = opsets_of(message_.opsets);
    Scope scope;
    add_graph(message_.graph, scope, {opsets}, model_.graph);
    check_missing();
    std::unordered_set<std::string> names;
    for (const TensorMessage& each : message_.graph.initializers) names.insert(each.name);
    std::vector<ValueId> ids;
    for (size_t i = 0; i < message_.graph.inputs.size(); ++i) {
      if (names.contains(message_.graph.inputs[i].name)) continue;
      model_.inputs.push_back(message_.graph.inputs[i]);
      ids.push_back(model_.graph.inputs[i]);
    }
    model_.graph.inputs = ids;
    model_.outputs = message_.graph.outputs;
    return std::move(model_);
  }

 private:
  static std::string key(const std::string& domain, const std::string& name, const std::string& overload) {
    return plain_domain(domain) + '\n' + name + '\n' + overload;
  }
  [[noreturn]] void invalid(const std::string& what) const { file_.fail(what); }

  ValueId define(Scope& scope, const std::string& name) {
    const ValueId id = static_cast<ValueId>(model_.values++);
    if (!name.empty()) scope.values[name] = id;
    return id;
  }
  ValueId find(const Scope& scope, const std::string& name, const std::string& user) const {
    if (name.empty()) return kAbsent;
    for (const Scope* each = &scope; each; each = each->outer)
      if (const auto found = each->values.find(name); found != each->values.end()) return found->second;
    invalid("has " + user + " that uses " + quote(name) + ", which nothing before defines");
  }

  // `graph` keeps its inputs and outputs; its initializers are moved to the model.
  void add_graph(GraphMessage& message, Scope& scope, const Context& context, Graph& graph) {
    if (message.sparse) invalid("has sparse initializers, which are not supported");
    for (TensorMessage& each : message.initializers) model_.initializers[define(scope, each.name)] = each;
    for (const ValueMessage& each : message.inputs) {
      const auto found = scope.values.find(each.name);
      const bool has_value = found != scope.values.end() && model_.initializers.contains(found->second);
      graph.inputs.push_back(has_value ? found->second : define(scope, each.name));
    }
    for (NodeMessage& each : message.nodes) add_node(each, scope, context, graph);
    for (const ValueMessage& each : message.outputs) graph.output_types.push_back(each.type);
    for (const ValueMessage& each : message.outputs)
      graph.outputs.push_back(find(scope, each.name, "a graph " + quote(message.name)));
  }

  void add_node(NodeMessage& message, Scope& scope, const Context& context, Graph& graph) {
    const auto function = functions_.find(key(message.domain, message.op, message.overload));
    if (function != functions_.end()) return inline_function(*function->second, message, scope, context, graph);
    if (++model_.nodes > kMostNodes) invalid("has over " + std::to_string(kMostNodes) + " nodes");
    Node node;
    node.op_name = message.op;
    node.name = message.name.empty() && !message.outputs.empty() ? message.outputs[0] : message.name;
    node.domain = plain_domain(message.domain);
    node.number = model_.nodes - 1;
    const auto opset = context.opsets.find(node.domain);
    node.opset = opset == context.opsets.end() ? 1 : opset->second;
    if (node.domain != kOwnDomain) node.op = find_operator(node.domain, node.op_name);
    if (!node.op) missing_[(node.domain.empty() ? "" : node.domain + ".") + node.op_name].push_back(node.name);
    const std::string user = "a node " + quote(node.name) + " (" + quote(node.op_name) + ")";
    for (const std::string& each : message.inputs) node.inputs.push_back(find(scope, each, user));
    while (!node.inputs.empty() && node.inputs.back() == kAbsent) node.inputs.pop_back();
    for (AttributeMessage& each : message.attributes) add_attribute(each, scope, context, user, node);
    for (const std::string& each : message.outputs) node.outputs.push_back(each.empty() ? kAbsent : define(scope, each));
    graph.nodes.push_back(std::move(node));
  }

  void add_attribute(const AttributeMessage& message, const Scope& scope, const Context& context, const std::string& user,
                     Node& node) {
    AttributeMessage attribute = message;
    if (!message.reference.empty()) {
      const auto found = context.bound ? context.bound->find(message.reference) : decltype(context.bound->end()){};
      if (!context.bound || found == context.bound->end()) return;
      attribute = *found->second;
      attribute.name = message.name;
    }
    if (attribute.sparse) invalid("has " + user + " with a sparse tensor, which is not supported");
    if (context.depth > kMostCalls) invalid("has graphs nested over " + std::to_string(kMostCalls) + " deep");
    for (GraphMessage& each : attribute.graphs) {
      Scope inner{&scope};
      auto graph = std::make_unique<Graph>();
      Context deeper = context;
      ++deeper.depth;
      add_graph(each, inner, deeper, *graph);
      node.graphs.emplace_back(attribute.name, std::move(graph));
    }
    attribute.graphs.clear();
    node.attributes.push_back(std::move(attribute));
  }

  // Adds the nodes of the function's body with the inputs and the attributes of the call.
  void inline_function(const FunctionMessage& function, const NodeMessage& call, Scope& scope, const Context& context,
                       Graph& graph) {
    if (++calls_ > kMostNodes) invalid("calls functions over " + std::to_string(kMostNodes) + " times");
    const std::string user = "a call " + quote(call.name) + " of the function " + quote(function.name);
    if (context.depth > kMostCalls) invalid("has " + user + ": functions nest over " + std::to_string(kMostCalls) + " deep");
    std::vector<AttributeMessage> own;
    for (const AttributeMessage& each : call.attributes) {
      own.push_back(each);
      if (each.reference.empty() || !context.bound) continue;
      const auto found = context.bound->find(each.reference);
      if (found == context.bound->end()) own.pop_back();
      else own.back() = *found->second, own.back().name = each.name;
    }
    std::map<std::string, const AttributeMessage*> bound;
    for (const AttributeMessage& each : function.defaults) bound[each.name] = &each;
    for (const AttributeMessage& each : own) bound[each.name] = &each;
    Scope inner;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      inner.values[function.inputs[i]] = i < call.inputs.size() ? find(scope, call.inputs[i], user) : kAbsent;
    const Opsets opsets = function.opsets.empty() ? context.opsets : opsets_of(function.opsets);
    const Context body{opsets, &bound, context.depth + 1};
    for (const NodeMessage& each : function.nodes) {
      NodeMessage copy = each;
      add_node(copy, inner, body, graph);
    }
    for (size_t i = 0; i < call.outputs.size() && i < function.outputs.size(); ++i)
      if (!call.outputs[i].empty()) scope.values[call.outputs[i]] = find(inner, function.outputs[i], user);
  }

  void check_missing() const {
    if (missing_.empty()) return;
    std::string all;
    for (const auto& [op, nodes] : missing_) {
      all += (all.empty() ? " " : ", ") + op + " (";
      for (size_t i = 0; i < nodes.size() && i < kMostNamedNodes; ++i) all += (i ? ", " : "") + quote(nodes[i]);
      if (nodes.size() > kMostNamedNodes) all += " and " + std::to_string(nodes.size() - kMostNamedNodes) + " more";
      all += ")";
    }
    throw Error(Code::unsupported, "[" + file_.path() + "] has operators that are not implemented, at these nodes:" + all);
  }

  const OpenedFile& file_;
  ModelMessage& message_;
  Model model_;
  size_t calls_ = 0;  // of functions
  std::map<std::string, const FunctionMessage*> functions_;
  std::map<std::string, std::vector<std::string>> missing_;
};

// Adds the values that a graph and its inner graphs use.
void add_uses(const Graph& graph, std::unordered_set<ValueId>& all) {
  for (const Node& node : graph.nodes) {
    all.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [name, inner] : node.graphs) add_uses(*inner, all);
  }
  all.insert(graph.outputs.begin(), graph.outputs.end());
}
}  // namespace

void find_last_uses(Graph& graph) {
  std::unordered_set<ValueId> own(graph.inputs.begin(), graph.inputs.end());
  for (const Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  std::unordered_set<ValueId> seen(graph.outputs.begin(), graph.outputs.end());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    std::unordered_set<ValueId> used(node->inputs.begin(), node->inputs.end());
    used.insert(node->outputs.begin(), node->outputs.end());
    for (const auto& [name, inner] : node->graphs) {
      add_uses(*inner, used);
      find_last_uses(*inner);
    }
    node->dead.clear();
    for (const ValueId id : used)
      if (id != kAbsent && own.contains(id) && seen.insert(id).second) node->dead.push_back(id);
  }
}

void find_producers(const Graph& graph, Model& model) {
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kAbsent) model.producers[node.outputs[i]] = {node.number, i};
    for (const auto& [name, inner] : node.graphs) find_producers(*inner, model);
  }
}

Model build_model(const OpenedFile& file, ModelMessage&& message) {
  Model model = Builder(file, message).build();
  fuse_quantization_pairs(model);
  fold_batch_norms(model);
  find_last_uses(model.graph);
  find_producers(model.graph, model);
  return model;
}

}  // namespace plugrad::io::onnx
