#include <core/autograd/node.hpp>

#include <core/autograd/anomaly.hpp>
#include <core/autograd/checkpoint.hpp>
#include <core/autograd/memory.hpp>
#include <core/tensor/tensor_transform.hpp>

#include <plugrad/autograd/autograd.hpp>

#include <algorithm>
#include <cstdlib>

namespace plugrad {

More::More() = default;
More::~More() = default;

// A destroyed node releases further nodes. They go on a list, not on the stack: a chain may have 10 million.
void destroy(Node* node) noexcept {
  Local& l = local();
  node->next_dying = static_cast<Node*>(std::exchange(l.pending.first, node));
  if (std::exchange(l.pending.running, true)) return;
  while (auto* each = static_cast<Node*>(l.pending.first)) {
    l.pending.first = each->next_dying;
    each->~Node();
    l.objects.put(each);
  }
  l.pending.running = false;
}

namespace {
// The caller has reserved an object.
[[gnu::always_inline]] inline Ref<Node> make_node(Local& l, const plugrad_view& view) {
  Node* node = new (l.objects.get_reserved()) Node;
  node->rank = view.rank;
  node->dtype = view.dtype;
  for (int i = 0; i < view.rank; ++i) node->shape[i] = view.shape[i];
  return Ref<Node>(node);
}

// A saved output is held without its node, so that no node keeps itself alive.
[[gnu::always_inline]] inline void save(Node& node, int place, const Tensor& value, bool is_output) {
  std::construct_at(&node.saved[static_cast<size_t>(place)],
                    is_output ? with_view(value, view_of(value)) : Tensor(value));  // it was undefined
  node.versions[static_cast<size_t>(place)] = storage_of(value)->version;
}
}  // namespace

Ref<Node> new_node(const plugrad_view& view) {
  Local& l = local();
  l.objects.reserve();
  return make_node(l, view);
}

[[gnu::noinline]] Node& record(const Rule& rule, const Tensor& out, const Tensor* const* operands, int count) {
  Local& l = local();
  l.objects.reserve();
  // Shares the operands' nodes before it writes its own: an atomic operation waits for all earlier stores.
  for (int i = 0; i < count; ++i) Ref(operands[i]->impl().node).release();
  Ref<Node> node = make_node(l, view_of(out));
  node->rule = &rule;
  node->operands = static_cast<uint8_t>(count);
  unsigned uses = l.mode & kRetaining ? kInputs : 0;
  for (int i = 0; i < count; ++i) {
    std::construct_at(&node->next[static_cast<size_t>(i)], operands[i]->impl().node.get());  // adopts the shared reference
    if (node->next[static_cast<size_t>(i)]) uses |= rule.vjps[static_cast<size_t>(i)].uses;
  }
  if (uses & kSavedTensors) {
    for (int i = 0; i < count; ++i)
      if (uses >> i & 1) save(*node, i, *operands[i], false);
    if (uses & kOutput) save(*node, count, out, true);
  }
  if (l.mode & kObserving) [[unlikely]]
    observe_node(*node, out, {operands, static_cast<size_t>(count)});
  out.impl().node = std::move(node);
  return *out.impl().node;
}

void note_transform(Node& node, const Tensor& of) {
  const StandIn* const in = storage_of(of)->stand_in;
  if (!in) return;
  node.flags |= Node::kInside;
  node.extra().transform = in->transform->id;
  for (size_t i = 0; i < node.saved.size(); ++i)
    if (node.saved[i].defined()) node.versions[i] = stand_ins::version_of(*storage_of(node.saved[i]));
}

[[gnu::noinline, gnu::cold]] void observe_node(Node& node, const Tensor& out, std::span<const Tensor* const> operands) {
  const uint32_t mode = local().mode;
  if (mode & kRetaining) node.flags |= Node::kRetains;
  if (mode & (kDetecting | kDetectingForward)) detect_forward(node, out, operands);
  if (mode & kCheckpointing && !(mode & kRetaining)) list_in_checkpoint(node, operands);
  if (mode & kTracking) track(node, operands);
  if (mode & kTransformedMode) note_transform(node, out);
}

namespace {
void observe_all(Node& node, const Tensor& out, const std::vector<Tensor>& operands) {
  std::vector<const Tensor*> all;
  for (const Tensor& each : operands) all.push_back(&each);
  observe_node(node, out, all);
}
}  // namespace

bool any_requires_grad(const std::vector<Tensor>& operands) {
  return std::ranges::any_of(operands, [](const Tensor& x) { return x.requires_grad(); });
}

Node& record_all(const Rule& rule, const Tensor& out, const std::vector<Tensor>& operands) {
  Ref<Node> node = new_node(view_of(out));
  node->rule = &rule;
  node->more = std::make_unique<More>();
  for (const Tensor& each : operands) node->more->next.push_back(each.impl().node);
  if (local().mode & kObserving) observe_all(*node, out, operands);
  out.impl().node = std::move(node);
  return *out.impl().node;
}

const Tensor& Saved::checked(int i) const {
  const Tensor& value = node_.saved[static_cast<size_t>(i)];
  const Storage& storage = *storage_of(value);
  const uint32_t now = node_.flags & Node::kInside ? stand_ins::version_of(storage) : storage.version,
                 then = node_.versions[static_cast<size_t>(i)];
  if (now != then) [[unlikely]]
    throw Error(Code::invalid, std::string("[backward] a value that ") + node_.rule->name +
                                   " saved for its gradient was changed in place (version " + std::to_string(then) +
                                   " then, " + std::to_string(now) + " now): clone it before the change");
  return value;
}

// Gradients can be added to the sums of ops' results; the sums of leaves are in the pass. A gradient with further owners, or
// with a recorded computation, must keep its value.
Tensor* Saved::sum() const {
  Node& operand = *node_.edges()[position_];
  if (!operand.rule || recording() || !operand.sum.defined()) return nullptr;
  const bool alone = operand.sum.impl().refs.load(std::memory_order_acquire) == 1 &&
                     storage_of(operand.sum)->refs.load(std::memory_order_acquire) == 1;
  return alone && operand.sum.is_contiguous() ? &operand.sum : nullptr;
}

Tensor Saved::output() const {
  const Tensor& value = checked(node_.operands);
  if (!recording()) return value;
  Tensor attached = with_view(value, view_of(value));
  attached.impl().node = Ref<Node>::share(&node_);
  return attached;
}

// --- Modes.

NoGrad::NoGrad() : before_(local().mode) { local().mode &= ~uint32_t(kRecording); }
NoGrad::~NoGrad() { local().mode = before_; }
EnableGrad::EnableGrad() : before_(local().mode) { local().mode |= kRecording; }
EnableGrad::~EnableGrad() { local().mode = before_; }
bool grad_enabled() { return recording(); }

// --- A tensor's place in the graph.

Node* holder(const Tensor& x) {
  const Impl& impl = x.impl();
  return impl.node ? impl.node.get() : impl.frozen ? frozen_node(impl) : nullptr;
}

Node& node_of(const Tensor& x, const char* what) {
  require_defined(x, what);
  if (Node* node = holder(x)) return *node;
  throw Error(Code::invalid, std::string("[") + what + "] the tensor requires no gradient: call requires_grad_() first");
}

std::string description(const Tensor& x) {
  return "shape " + x.shape().text() + ", " + dtype_name(x.dtype()) + ", " + x.device().name();
}

Tensor& Tensor::requires_grad_(bool on) {
  require_defined(*this, "requires_grad_");
  if (!is_leaf()) {
    if (on) return *this;
    throw Error(Code::invalid, "[requires_grad_] this tensor is the result of " + std::string(op_name()) +
                                   ": only leaves can be changed; detach() it");
  }
  if (on && !is_inexact(dtype()))
    throw Error(Code::invalid, std::string("[requires_grad_] a tensor of ") + dtype_name(dtype()) +
                                   " has no gradient: expected a floating or complex dtype");
  if (on != static_cast<bool>(impl_->node)) observe::note_change(*impl_->storage);
  if (!on && impl_->node) freeze(*impl_);
  if (on && !impl_->node) impl_->node = impl_->frozen ? thaw(*impl_) : new_node(impl_->view);
  if (on && stand_ins::has_scope()) note_transform(*impl_->node, *this);
  if (on) impl_->node->flags &= static_cast<uint8_t>(~Node::kUnasked);
  return *this;
}

void track_unasked(Tensor& leaf) {
  leaf.requires_grad_();
  if (leaf.is_leaf()) leaf.impl().node->flags |= Node::kUnasked;
}

bool is_parameter(const Tensor& x) {
  require_defined(x, "is_parameter");
  const Node* node = holder(x);
  return node && !node->rule && !(node->flags & Node::kUnasked);
}

bool Tensor::requires_grad() const { return impl_ && impl_->node; }
bool Tensor::is_leaf() const {
  require_defined(*this, "is_leaf");
  return !impl_->node || !impl_->node->rule;
}
Tensor Tensor::grad() const {
  require_defined(*this, "grad");
  Node* node = holder(*this);
  if (node) note_gradient(*node);
  return node ? node->grad : Tensor();
}
const char* Tensor::op_name() const { return is_leaf() ? "" : impl_->node->rule->name; }
void Tensor::retain_grad() { node_of(*this, "retain_grad").flags |= Node::kRetains; }

void Tensor::set_grad(const Tensor& grad) {
  Node& node = node_of(*this, "set_grad");
  if (grad.defined() && (grad.shape() != shape() || grad.dtype() != dtype() || grad.device() != device()))
    throw Error(Code::invalid, "[set_grad] a gradient of shape " + grad.shape().text() + " for a tensor of shape " +
                                   shape().text() + ": shape, dtype and device must be equal");
  note_gradient(node);
  node.grad = grad;
}

void Tensor::clear_grad() {
  if (!impl_) return;
  if (Node* node = holder(*this)) {
    note_gradient(*node);
    node->grad = {};
  }
}

Tensor Tensor::detach() const {
  require_defined(*this, "detach");
  return constant(*this);
}

namespace {
// Returns whether axes of a strided view may reach the same elements: an axis steps over less than the range of the axes
// with smaller strides. A view with interleaving axes that never meet counts as overlapping too; plugrad's functions do not
// make such views.
bool may_overlap(const plugrad_view& v) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // strides and extents
  for (int i = 0; i < v.rank; ++i)
    if (v.shape[i] > 1) axes.emplace_back(std::abs(v.strides[i]), v.shape[i]);
  std::ranges::sort(axes);
  int64_t reach = 0;
  for (const auto& [stride, extent] : axes) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}
}  // namespace

void require_writable(const Tensor& x, const char* what) {
  require_defined(x, what);
  if (stand_ins::is_on()) [[unlikely]]
    stand_ins::note_writing(*storage_of(x));
  if (x.impl().node && !x.impl().node->rule && recording())
    throw Error(Code::invalid,
                std::string("[") + what +
                    "] a leaf that requires a gradient cannot be written in place while recording: switch recording "
                    "off first (no_grad in Python, NoGrad in C++)");
  const plugrad_view& v = view_of(x);
  if ((v.layout & PLUGRAD_STRIDED) && v.count && may_overlap(v))
    throw Error(Code::invalid, std::string("[") + what + "] elements of this " +
                                   (v.layout & PLUGRAD_BROADCAST ? "expanded view" : "view of windows") +
                                   " share memory: clone it first");
}

}  // namespace plugrad
