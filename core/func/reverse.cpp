#include <core/autograd/node.hpp>
#include <core/autograd/rule.hpp>
#include <core/runtime/dispatch/stand_ins.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/func/vjp.hpp>

#include <memory>
#include <unordered_set>
#include <utility>

namespace plugrad::func {
namespace {
Tensor handle_of(const Tensor& x) {
  static constexpr auto kRule = rule("wanted", gradient([](const Tensor& grad) { return grad; }));
  require_defined(x, "grad");
  if (!is_inexact(dtype_of(x)))
    throw Error(Code::invalid, "[grad] an input of " + description(x) + " has no gradient: expected a floating dtype");
  Tensor handle = plugrad::ungraphed(x);
  if (x.requires_grad()) return differentiable(kRule, std::move(handle), x);
  handle.impl().node = new_node(view_of(handle));
  note_transform(*handle.impl().node, handle);
  return handle;
}

bool is_asked(const Node& leaf) { return !(leaf.flags & Node::kUnasked); }
}  // namespace

struct Recorded::Inner {
  EnableGrad recorded;
  stand_ins::Plain plain;
};
Recorded::Recorded() : inner_(std::make_unique<Inner>()) {}
Recorded::~Recorded() = default;

Tensors wanted(const Tensors& x) {
  const EnableGrad recorded;
  Tensors handles;
  for (const Tensor& each : x) handles.push_back(handle_of(each));
  return handles;
}

Tensor ungraphed(const Tensor& x) {
  require_defined(x, "ungraphed");
  return plugrad::ungraphed(x);
}

bool has_outer_graph(const Tensors& outputs, const Tensors& handles) {
  if (!recording()) return false;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> left;
  for (const Tensor& each : handles) {
    const Node& node = *each.impl().node;
    if (node.rule) return true;
    seen.insert(&node);
  }
  const auto add = [&](const Node* node) {
    if (node && seen.insert(node).second) left.push_back(node);
  };
  for (const Tensor& each : outputs) add(each.impl().node.get());
  while (!left.empty()) {
    const Node& node = *left.back();
    left.pop_back();
    if (!node.rule && is_asked(node)) return true;
    for (const Ref<Node>& edge : node.edges()) add(edge.get());
  }
  return false;
}

namespace {
// The gradients of the outputs that have a graph.
Tensors gradients_of(const Tensors& outputs, const Tensors& handles, const Tensors& seeds, bool creates_graph) {
  Tensors roots, given;
  if (seeds.size() != outputs.size())
    throw Error(Code::invalid, "[vjp] " + std::to_string(seeds.size()) + " seeds for " + std::to_string(outputs.size()) +
                                   " results: give one for each");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    given.push_back(seeds[i]);
  }
  if (roots.empty()) return Tensors(handles.size());
  return grad(roots, handles, {.seeds = given, .retain_graph = true, .create_graph = creates_graph, .allow_unused = true});
}
}  // namespace

Vjp vjp(const Function& f, const Tensors& primals) {
  const Tensors handles = wanted(primals);
  Tensors outputs;
  {
    const Recorded recorded;
    outputs = f(handles);
  }
  const bool is_inner = has_outer_graph(outputs, handles);
  Vjp made;
  for (const Tensor& each : outputs) made.results.push_back(is_inner ? each : plugrad::ungraphed(each));
  made.pullback = [outputs = std::move(outputs), handles, is_inner](const Tensors& seeds) {
    return gradients_of(outputs, handles, seeds, recording() && (is_inner || any_requires_grad(seeds)));
  };
  return made;
}

}  // namespace plugrad::func
