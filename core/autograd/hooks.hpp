// The hooks of a node, and their calls by a pass.
#pragma once
#include <core/autograd/node.hpp>
#include <plugrad/autograd/hooks.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace plugrad {

struct Hook {
  uint64_t id;
  std::function<Tensor(const Tensor& grad)> before;  // may replace the gradient
  std::function<void(Tensor& leaf)> after;           // runs once the gradient of a leaf is stored
  std::function<void(const Tensor& grad)> ready;     // runs once a pass of backward() has the whole gradient of a leaf
};

struct Hooks {
  std::vector<std::shared_ptr<const Hook>> all;  // in the order of registration
  Tensor leaf;                                   // an argument for hooks: the leaf's storage, without its node
};

// Makes later backward() calls, but not grad(), call the hook with the gradient that they will add to this leaf's, as soon
// as it is complete: after the leaf's other hooks, while the pass goes on.
HookHandle add_ready_hook(const Tensor& leaf, std::function<void(const Tensor& grad)> hook);
// Calls these hooks.
void call_ready_hooks(const Node& leaf, const Tensor& grad);

// Returns grad as changed by the node's hooks. Throws Error (invalid) if a hook returns a gradient of another shape, dtype
// or device.
Tensor after_hooks(const Node& node, Tensor grad);
// Calls the hooks for a stored gradient of this leaf.
void call_accumulate_hooks(Node& leaf);
// Updates the handle for hooks after the leaf's storage was exchanged.
void refresh_hooked_leaf(const Tensor& leaf);

}  // namespace plugrad
