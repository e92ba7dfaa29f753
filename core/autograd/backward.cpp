#include <plugrad/autograd/autograd.hpp>

#include <core/autograd/node.hpp>
#include <core/autograd/sum.hpp>
#include <core/runtime/fork.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace plugrad {
namespace {
ForkMutex leaf_mutex;  // guards the gradients of leaves, which may belong to several passes at once

class Mode {
 public:
  explicit Mode(bool record) : before_(local().mode) { local().mode = record ? static_cast<uint32_t>(kRecording) : 0; }
  ~Mode() { local().mode = before_; }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  uint32_t before_;
};

// One backward pass. The first walk, from the roots, counts in `pending` the gradients that each recorded node will receive.
// The second applies each ready node's rule to its sum; a node is ready once all its gradients arrived. Neither recurses.
class Pass {
 public:
  explicit Pass(BackwardOptions options) : options_(options) {
    static std::atomic<uint32_t> last{0};
    do id_ = ++last;
    while (!id_);
  }
  ~Pass() {
    if (!finished_) release_claims();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void add_root(Node& node, Tensor seed);
  // Keeps the sum of a node for captured().
  void capture(Node& node);
  void run();
  // The sum of a captured node; undefined if no gradient arrived.
  Tensor captured(Node& node);
  // Adds the sums of leaves, and of results that retain them, to their gradients: to all, or, on an error, to none.
  void commit();

 private:
  struct NodeSum {
    Node* node;
    Tensor sum;
  };

  void reach(Node& node);
  void claim(Node& node);
  void reach_leaf(Node& leaf);
  void traverse();
  NodeSum& leaf_sum(Node& leaf);
  void arrive(Node& node, Tensor&& grad);
  void propagate(Node& node);
  void finish(Node& node);
  void release_claims() noexcept;
  bool mine(const Node& node) const { return node.pass.load(std::memory_order_relaxed) == id_; }

  BackwardOptions options_;
  uint32_t id_;
  bool finished_ = false;
  Node* current_ = nullptr;  // being propagated
  std::vector<std::pair<Node*, Tensor>> roots_;
  std::vector<Node*> stack_;
  std::vector<NodeSum> leaves_;
  std::vector<NodeSum> retained_;  // the sums of results that keep their gradient
  std::unordered_map<Node*, uint32_t> shared_leaves_;  // leaves that another pass has claimed
  std::unordered_map<Node*, Tensor> captured_;
};

void Pass::add_root(Node& node, Tensor seed) {
  if (node.flags & Node::kSpent)
    throw Error(Code::invalid, "[backward] an earlier backward freed the graph: set retain_graph there");
  roots_.emplace_back(&node, std::move(seed));
}

void Pass::capture(Node& node) { captured_.emplace(&node, Tensor()); }

void Pass::claim(Node& node) {
  uint32_t none = 0;
  if (!node.pass.compare_exchange_strong(none, id_, std::memory_order_acquire))
    throw Error(Code::invalid,
                "[backward] another backward pass is using part of this graph: passes may share only leaves");
  if (node.flags & Node::kSpent) {
    node.pass.store(0, std::memory_order_release);
    throw Error(Code::invalid, std::string("[backward] an earlier backward freed part of the graph, at ") +
                                   node.rule->name + ": set retain_graph there");
  }
  stack_.push_back(&node);
}

void Pass::reach_leaf(Node& leaf) {
  if (mine(leaf) || shared_leaves_.contains(&leaf)) return;
  uint32_t none = 0;
  const uint32_t place = static_cast<uint32_t>(leaves_.size());
  if (leaf.pass.compare_exchange_strong(none, id_, std::memory_order_acquire)) leaf.pending = place;
  else shared_leaves_.emplace(&leaf, place);
  leaves_.push_back({&leaf, {}});
}

void Pass::reach(Node& node) {
  if (!node.rule) return reach_leaf(node);
  if (!mine(node)) claim(node);
}

void Pass::traverse() {
  for (auto& [root, seed] : roots_) reach(*root);
  while (!stack_.empty()) {
    const Node& node = *stack_.back();
    stack_.pop_back();
    for (const Ref<Node>& edge : node.edges()) {
      Node* next = edge.get();
      if (!next) continue;
      reach(*next);
      if (next->rule) ++next->pending;
    }
  }
}

Pass::NodeSum& Pass::leaf_sum(Node& leaf) {
  if (mine(leaf)) [[likely]] return leaves_[leaf.pending];
  return leaves_[shared_leaves_.at(&leaf)];
}

// Adds grad to a node's sum, after reducing it to the node's shape if the operand was broadcast.
[[gnu::always_inline]] inline void Pass::arrive(Node& node, Tensor&& grad) {
  if (!grad.defined()) return;
  if (!same_shape(view_of(grad), node)) [[unlikely]]
    grad = sum_to(grad, Shape(std::span<const int64_t>(node.shape, node.rank)));
  Tensor& sum = node.rule ? node.sum : leaf_sum(node).sum;
  sum = sum.defined() ? add_gradients(sum, grad) : std::move(grad);
}

void Pass::finish(Node& node) {
  if (!options_.retain_graph) {
    for (Tensor& each : node.saved)
      if (each.defined()) each = {};
    node.flags |= Node::kSpent;
  }
  node.pass.store(0, std::memory_order_release);
}

void Pass::propagate(Node& node) {
  const Tensor grad = std::exchange(node.sum, {});
  if (!captured_.empty()) [[unlikely]]
    if (const auto wanted = captured_.find(&node); wanted != captured_.end()) wanted->second = grad;
  if (node.flags & Node::kRetains && grad.defined()) [[unlikely]] retained_.push_back({&node, grad});
  const std::span<const Ref<Node>> edges = node.edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    Node* next = edges[i].get();
    if (!next) continue;
    const Vjp& vjp = node.vjp(i);
    if (grad.defined() && vjp.apply) arrive(*next, vjp.apply(grad, Saved(node, i)));
    if (next->rule && --next->pending == 0) stack_.push_back(next);
  }
  finish(node);
}

void Pass::run() {
  traverse();
  const Mode mode(options_.create_graph);
  for (auto& [root, seed] : roots_) arrive(*root, std::move(seed));
  for (auto& [root, seed] : roots_)
    if (root->rule && !root->pending && mine(*root) && std::ranges::find(stack_, root) == stack_.end())
      stack_.push_back(root);
  while (!stack_.empty()) {
    current_ = stack_.back();
    stack_.pop_back();
    propagate(*current_);
  }
  current_ = nullptr;
}

Tensor Pass::captured(Node& node) {
  return node.rule ? captured_.at(&node) : shared_leaves_.contains(&node) || mine(node) ? leaf_sum(node).sum : Tensor();
}

void Pass::commit() {
  const Mode mode(options_.create_graph);
  for (NodeSum& each : retained_)
    each.sum = each.node->grad.defined() ? add_gradients(each.node->grad, each.sum) : own(each.sum);
  std::vector<Tensor> before(leaves_.size()), after(leaves_.size());
  for (bool swapped = false; !swapped;) {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      {
        const std::lock_guard lock(leaf_mutex);
        before[i] = leaves_[i].node->grad;
      }
      if (!leaves_[i].sum.defined()) after[i] = before[i];
      else if (before[i].defined()) after[i] = add_gradients(before[i], leaves_[i].sum);
      else after[i] = leaves_[i].sum = own(leaves_[i].sum);  // kept for another round
    }
    const std::lock_guard lock(leaf_mutex);
    swapped = true;
    for (size_t i = 0; i < leaves_.size(); ++i) swapped &= leaves_[i].node->grad.is_same(before[i]);
    for (size_t i = 0; swapped && i < leaves_.size(); ++i) std::swap(leaves_[i].node->grad, after[i]);
  }
  for (NodeSum& each : retained_) each.node->grad = std::move(each.sum);
  release_claims();
}

// Releases the nodes that the pass still claims: all leaves and, if the pass failed, recorded nodes. Each unfinished node
// can be reached from a ready one, the current one, or a root.
void Pass::release_claims() noexcept {
  finished_ = true;
  for (NodeSum& each : leaves_)
    if (mine(*each.node)) each.node->pass.store(0, std::memory_order_release);
  std::vector<Node*> starts = std::exchange(stack_, {});
  if (current_) starts.push_back(current_);
  for (auto& [root, seed] : roots_) starts.push_back(root);
  const auto release = [this](Node& node) {
    if (!node.rule || !mine(node)) return;
    node.sum = {};
    node.pending = 0;
    node.pass.store(0, std::memory_order_release);
    stack_.push_back(&node);
  };
  for (Node* each : starts) release(*each);
  while (!stack_.empty()) {
    const Node& node = *stack_.back();
    stack_.pop_back();
    for (const Ref<Node>& edge : node.edges())
      if (edge) release(*edge);
  }
}

Tensor checked_seed(const Tensor& output, const Tensor& seed) {
  if (!seed.defined()) {
    if (output.count() == 1) return gradient_of_one(output);
    throw Error(Code::invalid, "[backward] the root has shape " + output.shape().text() +
                                   ", not one element: pass a seed of that shape");
  }
  if (seed.shape() != output.shape() || seed.dtype() != output.dtype() || seed.device() != output.device())
    throw Error(Code::invalid, "[backward] a seed of shape " + seed.shape().text() + ", " + dtype_name(seed.dtype()) + ", " +
                                   seed.device().name() + " for a root of shape " + output.shape().text() + ", " +
                                   dtype_name(output.dtype()) + ", " + output.device().name());
  return seed;
}

void add_roots(Pass& pass, const std::vector<Tensor>& outputs, const std::vector<Tensor>& seeds) {
  if (!seeds.empty() && seeds.size() != outputs.size())
    throw Error(Code::invalid, "[backward] " + std::to_string(seeds.size()) + " seeds for " +
                                   std::to_string(outputs.size()) + " outputs: expected one for each, or none");
  for (size_t i = 0; i < outputs.size(); ++i) {
    require_defined(outputs[i], "backward");
    Node* node = outputs[i].impl().node.get();
    if (!node)
      throw Error(
          Code::invalid,
          "[backward] the root has no graph: no tensor behind it has requires_grad_(), or recording was off");
    pass.add_root(*node, checked_seed(outputs[i], seeds.empty() ? Tensor() : seeds[i]));
  }
}
}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& seeds, BackwardOptions options) {
  options.retain_graph |= options.create_graph;
  Pass pass(options);
  add_roots(pass, outputs, seeds);
  pass.run();
  pass.commit();
}

void Tensor::backward(const Tensor& seed, BackwardOptions options) const {
  plugrad::backward({*this}, {seed}, options);
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const GradOptions& options) {
  Pass pass({options.retain_graph || options.create_graph, options.create_graph});
  add_roots(pass, outputs, options.seeds);
  for (const Tensor& input : inputs) {
    require_defined(input, "grad");
    if (!input.requires_grad())
      throw Error(Code::invalid, "[grad] an input of shape " + input.shape().text() +
                                     " requires no gradient: call requires_grad_() first");
    pass.capture(*input.impl().node);
  }
  pass.run();
  std::vector<Tensor> grads;
  for (const Tensor& input : inputs) {
    grads.push_back(pass.captured(*input.impl().node));
    if (!grads.back().defined() && !options.allow_unused)
      throw Error(Code::invalid, "[grad] no output depends on an input of shape " + input.shape().text() +
                                     ": set allow_unused to get an undefined gradient");
  }
  return grads;
}

}  // namespace plugrad
