#include <core/autograd/pass.hpp>

#include <core/autograd/anomaly.hpp>
#include <core/autograd/checkpoint.hpp>
#include <core/autograd/hooks.hpp>
#include <core/autograd/rule.hpp>
#include <core/autograd/sum.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/tensor/tensor_transform.hpp>

#include <algorithm>

namespace plugrad {
namespace {
ForkMutex leaf_mutex;  // guards the gradients of leaves: a leaf may belong to several passes at once

// Inside a checkpoint, the function may compute gradients: ops recorded by its pass belong to the checkpoint too.
class PassMode {
 public:
  explicit PassMode(bool record) : before_(local().mode), gradient_(std::exchange(local().gradient_of, "backward")) {
    local().mode = (before_ & kCheckpointing) | (record ? static_cast<uint32_t>(kRecording) : 0) |
                   (stand_ins::is_on() ? kTransformedMode : 0);
  }
  ~PassMode() {
    local().mode = before_;
    local().gradient_of = gradient_;
  }
  PassMode(const PassMode&) = delete;
  PassMode& operator=(const PassMode&) = delete;

 private:
  uint32_t before_;
  const char* gradient_;  // for profilers
};

bool is_observed() { return modes.load(std::memory_order_relaxed) & kObserved; }

}  // namespace

Pass::Pass(BackwardOptions options)
    : options_(options), detecting_(local().mode & kDetecting), leaves_transforms_(stand_ins::is_on()) {
  watched_ = options.create_graph || detecting_ || is_observed() ? Node::kWatched : 0;
  static std::atomic<uint32_t> last{0};
  do id_ = ++last;
  while (!id_);
}

Pass::Rare& Pass::rare() {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

void Pass::add_root(Node& node, Tensor seed) {
  if (node.flags & Node::kSpent)
    throw Error(Code::invalid, "[backward] an earlier backward freed the graph: set retain_graph there");
  roots_.emplace_back(&node, std::move(seed));
}

void Pass::capture(Node& node) {
  rare().captured.emplace(&node, Tensor());
  watched_ = Node::kWatched;
}

void Pass::claim(Node& node) {
  if (claimed_ == stack_.capacity()) stack_.reserve(2 * claimed_ + 16);  // because release_claims must not fail
  uint32_t none = 0;
  if (!node.pass.compare_exchange_strong(none, id_, std::memory_order_acquire))
    throw Error(Code::invalid, "[backward] another backward pass is using part of this graph: passes may share only leaves");
  if (node.flags & Node::kSpent) {
    node.pass.store(0, std::memory_order_release);
    throw Error(Code::invalid, std::string("[backward] an earlier backward freed part of the graph, at ") + node.rule->name +
                                   ": set retain_graph there");
  }
  ++claimed_;
  stack_.push_back(&node);
}

void Pass::reach_leaf(Node& leaf) {
  if (mine(leaf) || is_shared(leaf)) return;
  leaf_hooks_ |= static_cast<bool>(leaf.flags & Node::kHooked);
  uint32_t none = 0;
  const uint32_t place = static_cast<uint32_t>(leaves_.size());
  leaves_.push_back({&leaf, {}});  // before the claim: it may fail
  if (leaf.pass.compare_exchange_strong(none, id_, std::memory_order_acquire)) leaf.pending = place;
  else rare().shared_leaves.emplace(&leaf, place);
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
      else if (next->flags & Node::kHooked) [[unlikely]] ++rare().awaited[next];
    }
  }
}

Pass::NodeSum& Pass::leaf_sum(Node& leaf) {
  if (mine(leaf)) [[likely]]
    return leaves_[leaf.pending];
  return leaves_[rare().shared_leaves.at(&leaf)];
}

// Adds grad to a node's sum, after reducing it to the node's shape if the operand was broadcast.
[[gnu::always_inline]] inline void Pass::arrive(Node& node, Tensor&& grad) {
  if (!grad.defined()) return;
  if (leaves_transforms_) [[unlikely]] {
    grad = outside_transforms(std::move(grad), node.transform());
    if (!grad.defined()) return;
  }
  if (!same_shape(view_of(grad), node)) [[unlikely]]
    grad = sum_to(grad, Shape(std::span<const int64_t>(node.shape, node.rank)));
  Tensor& sum = node.rule ? node.sum : leaf_sum(node).sum;
  sum = sum.defined() ? add_gradients(sum, grad) : std::move(grad);
}

// Lets hooks replace the gradient of a node, and keeps the gradient if it is captured or retained.
void Pass::notice(Node& node, Tensor& grad) {
  auto& captured = rare().captured;
  const auto wanted = captured.find(&node);
  if (wanted != captured.end()) rare().reached.insert(&node);
  if (!grad.defined()) return;
  if (node.flags & Node::kHooked) grad = after_hooks(node, std::move(grad));
  if (detecting_) require_no_nan(node, grad);
  if (wanted != captured.end()) wanted->second = grad;
  if (node.flags & Node::kRetains) retained_.push_back({&node, grad});
}

// The hooks of a leaf are called as soon as its last gradient has arrived, while the pass goes on.
void Pass::arrived(Node& leaf) {
  const auto found = rare().awaited.find(&leaf);
  if (found == rare().awaited.end() || --found->second) return;  // hooked since the pass began, or not complete
  rare().awaited.erase(found);
  call_leaf_hooks(leaf_sum(leaf));
}

void Pass::call_leaf_hooks(NodeSum& leaf) {
  if (!leaf.sum.defined()) return;
  leaf.sum = after_hooks(*leaf.node, std::move(leaf.sum));
  if (rare().captured.empty()) call_ready_hooks(*leaf.node, leaf.sum);
  rare().called.insert(leaf.node);
}

// The hooks of roots, which no op's gradient reaches.
void Pass::call_remaining_leaf_hooks() {
  for (NodeSum& each : leaves_)
    if (each.node->flags & Node::kHooked && !rare().called.contains(each.node)) call_leaf_hooks(each);
}

void Pass::require_no_nan_in_leaves() {
  for (const NodeSum& each : leaves_) require_no_nan(*each.node, each.sum);
}

[[gnu::always_inline]] inline void Pass::finish(Node& node) {
  if (!options_.retain_graph) {
    for (Tensor& each : node.saved) {
      if (!each.defined()) [[likely]]
        continue;
      each = {};
      node.flags |= Node::kSpent;
    }
  }
  node.pass.store(0, std::memory_order_release);
}

// Adds gradient(i) to the sum of each operand i with a node.
template <class Gradient> [[gnu::always_inline]] inline void Pass::pass_on(Node& node, Gradient gradient) {
  const std::span<const Ref<Node>> edges = node.edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    Node* next = edges[i].get();
    if (!next) continue;
    arrive(*next, gradient(i));
    if (next->rule) {
      if (--next->pending == 0) stack_.push_back(next);
    } else if (next->flags & Node::kHooked) [[unlikely]] {
      arrived(*next);
    }
  }
  finish(node);
}

namespace {
// See Rule::for_complex. Without saved values the gradient is linear with real factors, so that conj changes nothing.
[[gnu::noinline, gnu::cold]] Tensor complex_gradient(Node& node, size_t i, const Tensor& grad) {
  const Vjp& vjp = node.vjp(i);
  if (node.rule->for_complex || !(vjp.uses & kSavedTensors)) return vjp.apply(grad, Saved(node, i));
  const Tensor gradient = vjp.apply(conjugated(grad), Saved(node, i));
  return gradient.defined() && is_complex(dtype_of(gradient)) ? conjugated(gradient) : gradient;
}

[[gnu::always_inline]] inline Tensor gradient_of_operand(Node& node, size_t i, const Tensor& grad) {
  const Vjp& vjp = node.vjp(i);
  if (!grad.defined() || !vjp.apply) return {};
  if (is_complex(node.dtype)) [[unlikely]]
    return complex_gradient(node, i, grad);
  return vjp.apply(grad, Saved(node, i));
}

// A gradient computed from saved values, but without a graph, has derivatives of 0 with respect to them. A node states this:
// otherwise the gradient could not be a root of a further pass. An example is the gradient of relu.
Tensor connected(Tensor gradient, Node& node, size_t i) {
  static constexpr auto kRule = rule("constant", kNoGradient, kNoGradient, kNoGradient);
  const unsigned uses = node.vjp(i).uses;
  if (!gradient.defined() || gradient.requires_grad() || !(uses & kSavedTensors)) return gradient;
  std::vector<Tensor> used;
  for (int input = 0; input < kOperands; ++input)
    if (uses >> input & 1) used.push_back(node.saved[static_cast<size_t>(input)]);
  if (uses & kOutput) used.push_back(Saved(node, i).output());
  std::erase_if(used, [](const Tensor& x) { return !x.requires_grad(); });
  if (used.empty()) return gradient;
  Tensor out = with_view(gradient, view_of(gradient));
  record_all(kRule, out, used);
  return out;
}
}  // namespace

[[gnu::always_inline]] inline void Pass::propagate(Node& node) {
  Tensor grad = std::exchange(node.sum, {});
  if ((node.flags | watched_) & Node::kWatched) [[unlikely]]
    return propagate_watched(node, std::move(grad));
  pass_on(node, [&](size_t i) { return gradient_of_operand(node, i, grad); });
}

Tensor Pass::watched_gradient(Node& node, size_t i, const Tensor& grad) {
  Tensor gradient = gradient_of_operand(node, i, grad);
  return options_.create_graph ? connected(std::move(gradient), node, i) : gradient;
}

void Pass::propagate_watched(Node& node, Tensor grad) {
  const observe::GradientOf observed(node.rule->name);
  notice(node, grad);
  if (node.flags & Node::kPart) return pass_to_call(node, std::move(grad));
  std::vector<Tensor> of_call;
  if (node.flags & Node::kCall) of_call = gradients_of(node, grad);
  else if (node.flags & Node::kStripped && grad.defined()) restore(node);
  pass_on(node, [&](size_t i) {
    Tensor gradient = node.flags & Node::kCall ? std::move(of_call[i]) : watched_gradient(node, i, grad);
    if (detecting_) require_no_nan(node, i, gradient);
    return gradient;
  });
}

// Collects the gradient of one result of a call.
void Pass::pass_to_call(Node& part, Tensor grad) {
  Node& call = *part.next[0];
  std::vector<CallPart>& parts = rare().parts[&call];
  parts.resize(part_count(call));
  auto& [node, sum] = parts[part_index(part)];
  node = &part;
  if (grad.defined()) sum = sum.defined() ? add_gradients(sum, grad) : std::move(grad);
  if (--call.pending == 0) stack_.push_back(&call);
  finish(part);
}

// Returns the gradients of a call's operands. All are undefined if no gradient arrived.
std::vector<Tensor> Pass::gradients_of(Node& call, Tensor grad) {
  std::vector<CallPart> parts =
      part_count(call) == 1 ? std::vector<CallPart>{{&call, std::move(grad)}} : std::move(rare().parts[&call]);
  if (std::ranges::none_of(parts, [](const CallPart& each) { return each.sum.defined(); }))
    return std::vector<Tensor>(call.edges().size());
  if (call.flags & Node::kStripped) restore(call);
  std::vector<Tensor> gradients = gradients_of_call(call, parts);
  if (!options_.retain_graph && drop_saved_of_call(call)) call.flags |= Node::kSpent;
  return gradients;
}

void Pass::run() {
  const observe::Event observed(EventKind::gradient, "backward", nullptr);
  traverse();
  const PassMode mode(options_.create_graph);
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
  if (leaf_hooks_) [[unlikely]]
    call_remaining_leaf_hooks();
  if (detecting_) [[unlikely]]
    require_no_nan_in_leaves();
}

bool Pass::reached(const Node& node) const {
  return (rare_ && rare_->reached.contains(&node)) || is_shared(node) || (!node.rule && mine(node));
}

Tensor Pass::captured(Node& node) {
  return node.rule ? rare().captured.at(&node) : reached(node) ? leaf_sum(node).sum : Tensor();
}

namespace {
// A gradient of examples, or with a tangent, has no place in the .grad of a leaf from outside.
void require_outside(const Node& leaf, const Tensor& grad) {
  const TensorTransform* const inside = transform_of({&grad, 1});
  if (!inside || inside->id <= leaf.transform()) return;
  const std::string what = inside->what;
  throw Error(Code::invalid, "[" + what + "] backward() inside a function of " + what +
                                 " would leave a gradient in the .grad of a tensor from outside, which cannot hold it: use "
                                 "func.grad, or call backward() outside");
}
}  // namespace

void Pass::commit() {
  const PassMode mode(options_.create_graph);
  if (observe::will_repeat()) [[unlikely]]
    for (const std::vector<NodeSum>* all : {&leaves_, &retained_})
      for (const NodeSum& each : *all) note_gradient(*each.node);
  for (NodeSum& each : retained_)
    each.sum = each.node->grad.defined() ? add_gradients(each.node->grad, each.sum) : own(each.sum);
  if (leaves_transforms_) [[unlikely]]
    for (const NodeSum& each : leaves_) require_outside(*each.node, each.sum);
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
  if (!leaf_hooks_) [[likely]]
    return;
  for (const NodeSum& each : leaves_)
    if (each.node->flags & Node::kHooked && each.sum.defined()) call_accumulate_hooks(*each.node);
}

// Releases the nodes still claimed by the pass: all leaves and, if the pass failed, recorded nodes. Each unfinished node can
// be reached from a ready node, the current node, or a root.
void Pass::release_claims() noexcept {
  finished_ = true;
  for (NodeSum& each : leaves_)
    if (mine(*each.node)) each.node->pass.store(0, std::memory_order_release);
  const auto give_up = [](Node& node) {
    node.sum = {};
    node.pending = 0;
    node.pass.store(0, std::memory_order_release);
  };
  const auto release = [&](Node& node) {
    if (!node.rule || !mine(node)) return;
    give_up(node);
    stack_.push_back(&node);  // allocates nothing: claim made room for each node
  };
  for (Node* ready : stack_) give_up(*ready);
  if (current_) release(*current_);
  for (auto& [root, seed] : roots_) release(*root);
  while (!stack_.empty()) {
    const Node& node = *stack_.back();
    stack_.pop_back();
    for (const Ref<Node>& edge : node.edges())
      if (edge) release(*edge);
  }
}

}  // namespace plugrad
