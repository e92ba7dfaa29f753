// A walk over a graph to compute gradients.
#pragma once
#include <core/autograd/call.hpp>
#include <core/autograd/node.hpp>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace plugrad {

// One backward pass. The first walk, from the roots, counts in `pending` the gradients to arrive at each recorded node. The
// second applies each ready node's rule to its sum; a node is ready once all its gradients arrived. Neither walk recurses.
class Pass {
 public:
  explicit Pass(BackwardOptions options);
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
  // Whether a captured node is in the graph of the roots.
  bool reached(const Node& node) const;
  // Adds the sums of leaves and of retaining results to their gradients: to all gradients or, on an error, to no gradient.
  void commit();

 private:
  struct NodeSum {
    Node* node;
    Tensor sum;
  };

  // Members needed by few passes.
  struct Rare {
    std::unordered_map<const Node*, uint32_t> shared_leaves;  // leaves claimed by another pass
    std::unordered_map<const Node*, Tensor> captured;
    std::unordered_map<const Node*, std::vector<CallPart>> parts;  // gradients for calls of several results
    std::unordered_set<const Node*> reached;                       // captured recorded nodes reached by the pass
    std::unordered_map<const Node*, uint32_t> awaited;  // by leaves with hooks: gradients that have not arrived yet
    std::unordered_set<const Node*> called;             // leaves whose hooks were called
  };

  Rare& rare();
  bool is_shared(const Node& leaf) const { return rare_ && rare_->shared_leaves.contains(&leaf); }
  void reach(Node& node);
  void claim(Node& node);
  void reach_leaf(Node& leaf);
  void traverse();
  NodeSum& leaf_sum(Node& leaf);
  void arrive(Node& node, Tensor&& grad);
  template <class Gradient> void pass_on(Node& node, Gradient gradient);
  void propagate(Node& node);
  void propagate_watched(Node& node, Tensor grad);
  void notice(Node& node, Tensor& grad);
  Tensor watched_gradient(Node& node, size_t i, const Tensor& grad);
  void pass_to_call(Node& part, Tensor grad);
  std::vector<Tensor> gradients_of(Node& call, Tensor grad);
  void require_no_nan_in_leaves();
  void arrived(Node& leaf);
  void call_leaf_hooks(NodeSum& leaf);
  void call_remaining_leaf_hooks();
  void finish(Node& node);
  void release_claims() noexcept;
  bool mine(const Node& node) const { return node.pass.load(std::memory_order_relaxed) == id_; }

  BackwardOptions options_;
  uint8_t watched_;  // all bits of Node::kWatched if the pass looks at the gradients of all nodes
  uint32_t id_;
  bool finished_ = false;
  bool leaf_hooks_ = false;  // whether a leaf has hooks
  bool detecting_;           // whether NaN is an error
  bool leaves_transforms_;   // whether gradients may arrive from the functions of transforms that have ended
  Node* current_ = nullptr;  // being propagated
  std::vector<std::pair<Node*, Tensor>> roots_;
  std::vector<Node*> stack_;
  size_t claimed_ = 0;  // recorded nodes, including finished nodes
  std::vector<NodeSum> leaves_;
  std::vector<NodeSum> retained_;  // the sums of retaining results
  std::unique_ptr<Rare> rare_;
};

}  // namespace plugrad
