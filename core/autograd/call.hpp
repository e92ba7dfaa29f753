// Calls of Functions in the graph.
//
// A call is a node with kCall. If the function has one result, the node belongs to it. Else each result has a node with
// kPart, whose only edge leads to the call; a pass collects their gradients and hands all of them to the call.
#pragma once
#include <core/autograd/checkpoint.hpp>

#include <vector>

namespace plugrad {

// A result of a call in a pass: its node, if the pass came to it, and the gradients that arrived there.
struct CallPart {
  Node* node = nullptr;
  Tensor sum;
};

// Which result of its call a node with kPart is.
size_t part_index(const Node& part);
size_t part_count(const Node& call);
// Calls the function's backward. Returns a gradient for each edge; undefined ones mean 0. Throws Error (invalid), which
// names the function, for gradients that do not fit.
std::vector<Tensor> gradients_of_call(Node& call, const std::vector<CallPart>& parts);

// What the function saved: its values and versions, for checkpoints.
Kept saved_of_call(const Node& call);
// Returns whether there was any.
bool drop_saved_of_call(Node& call);
void give_saved_to_call(Node& call, const Kept& kept);

}  // namespace plugrad
