// The part of recording for memory_snapshot.
#pragma once
#include <core/autograd/node.hpp>
#include <core/runtime/observe/tracking.hpp>

#include <span>

namespace plugrad {

// Keeps the tracker's list of nodes up to date, for the life of a node.
struct WatchedNode {
  explicit WatchedNode(Node& watched) : node(&watched) { tracking::watch(node); }
  ~WatchedNode() { tracking::unwatch(node); }
  WatchedNode(const WatchedNode&) = delete;
  WatchedNode& operator=(const WatchedNode&) = delete;
  Node* node;
};

// Watches a recorded node and the leaves among its operands, and marks the storages of parameters. If record_memory is off,
// clears the thread's mode instead.
void track(Node& node, std::span<const Tensor* const> operands);

}  // namespace plugrad
