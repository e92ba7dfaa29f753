// The hooks of one node, and how a pass calls them.
#pragma once
#include <core/autograd/node.hpp>
#include <plugrad/autograd/hooks.hpp>

#include <utility>
#include <vector>

namespace plugrad {

struct Hook {
  uint64_t id;
  std::function<Tensor(const Tensor& grad)> before;  // may replace the gradient
  std::function<void(Tensor& leaf)> after;           // runs once the gradient of a leaf is stored
};

struct Hooks {
  std::vector<std::shared_ptr<const Hook>> all;  // in the order of registration
  Tensor leaf;                                   // for hooks that receive the leaf: its storage, without its node
};

// Returns the gradient that the node's hooks make of grad. Throws Error (invalid) if one returns a gradient of another
// shape, dtype or device.
Tensor after_hooks(const Node& node, Tensor grad);
// Calls the hooks that run once the gradient of this leaf is stored.
void call_accumulate_hooks(Node& leaf);
// Keeps the handle that hooks receive up to date after the leaf's storage was exchanged.
void refresh_hooked_leaf(const Tensor& leaf);

}  // namespace plugrad
