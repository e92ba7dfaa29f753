#include <core/autograd/hooks.hpp>

#include <core/runtime/fork.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>

namespace plugrad {
namespace {
ForkMutex hooks_mutex;  // guards the hooks of all nodes

// Returns a copy, because a hook may remove itself.
Hooks hooks_of(const Node& node) {
  const std::lock_guard lock(hooks_mutex);
  return *node.more->hooks;
}

HookHandle add(const Tensor& x, const char* what, Hook hook) {
  static std::atomic<uint64_t> last{0};
  if (!hook.before && !hook.after && !hook.ready)
    throw Error(Code::invalid, std::string("[") + what + "] the hook is no function");
  Node& node = node_of(x, what);
  if (!node.rule) observe::note_change(*storage_of(x));
  More& more = node.extra();
  if (!more.hooks) more.hooks = std::make_shared<Hooks>();
  hook.id = ++last;
  const Tensor leaf = hook.after ? with_view(x, view_of(x)) : Tensor();
  const auto added = std::make_shared<const Hook>(std::move(hook));
  const std::lock_guard lock(hooks_mutex);
  more.hooks->all.push_back(added);
  if (leaf.defined()) more.hooks->leaf = leaf;
  // Passes of other threads read the flags: only a leaf's first hook changes them.
  if (!(node.flags & Node::kHooked)) node.flags |= Node::kHooked;
  return {more.hooks, added->id};
}

void require_like(const Tensor& replacement, const Tensor& grad) {
  if (!same_shape(view_of(replacement), view_of(grad)) || dtype_of(replacement) != dtype_of(grad) ||
      &device_of(replacement) != &device_of(grad))
    throw Error(Code::invalid, "[register_hook] a hook returned a gradient of " + description(replacement) +
                                   " in place of one of " + description(grad) + ": all of these must be equal");
}
}  // namespace

HookHandle detail::add_hook(const Tensor& x, std::function<Tensor(const Tensor&)> hook) {
  return add(x, "register_hook", {0, std::move(hook), {}, {}});
}

HookHandle detail::add_accumulate_hook(const Tensor& x, std::function<void(Tensor&)> hook) {
  constexpr const char* kWhat = "register_post_accumulate_grad_hook";
  if (!x.is_leaf())
    throw Error(Code::invalid, std::string("[") + kWhat + "] this tensor is the result of " + x.op_name() +
                                   ", and only leaves accumulate gradients: use register_hook");
  return add(x, kWhat, {0, {}, std::move(hook), {}});
}

HookHandle add_ready_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  return add(leaf, "add_ready_hook", {0, {}, {}, std::move(hook)});
}

void HookHandle::remove() {
  const std::shared_ptr<Hooks> hooks = hooks_.lock();
  if (!hooks) return;
  std::shared_ptr<const Hook> removed;  // destroyed without the lock: it may own tensors
  const std::lock_guard lock(hooks_mutex);
  const auto found = std::ranges::find(hooks->all, id_, [](const auto& each) { return each->id; });
  if (found == hooks->all.end()) return;
  ++observe::changes;
  removed = *found;
  hooks->all.erase(found);
}

Tensor after_hooks(const Node& node, Tensor grad) {
  for (const auto& each : hooks_of(node).all) {
    if (!each->before) continue;
    Tensor replacement = each->before(grad);
    if (!replacement.defined()) continue;
    require_like(replacement, grad);
    grad = std::move(replacement);
  }
  return grad;
}

void call_ready_hooks(const Node& leaf, const Tensor& grad) {
  for (const auto& each : hooks_of(leaf).all)
    if (each->ready) each->ready(grad);
}

void call_accumulate_hooks(Node& leaf) {
  const Hooks hooks = hooks_of(leaf);
  for (const auto& each : hooks.all) {
    if (!each->after) continue;
    Tensor handle = with_view(hooks.leaf, view_of(hooks.leaf));
    handle.impl().node = Ref<Node>::share(&leaf);
    each->after(handle);
  }
}

void refresh_hooked_leaf(const Tensor& leaf) {
  const Node* node = leaf.impl().node.get();
  if (!node || !(node->flags & Node::kHooked)) return;
  const std::lock_guard lock(hooks_mutex);
  node->more->hooks->leaf = with_view(leaf, view_of(leaf));
}

}  // namespace plugrad
