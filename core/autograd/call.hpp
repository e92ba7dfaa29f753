// Calls of Functions in the graph.
//
// A call is a node with kCall. If the function has a single result, the node belongs to it. Else each result has a node with
// kPart and a single edge, to the call; a pass collects their gradients and hands all of them to the call.
#pragma once
#include <core/autograd/checkpoint.hpp>

#include <vector>

namespace plugrad {

// A result of a call in a pass: its node, if the pass reached it, and the sum of the gradients arrived there.
struct CallPart {
  Node* node = nullptr;
  Tensor sum;
};

// Returns the index of a kPart node's result among the results of its call.
size_t part_index(const Node& part);
size_t part_count(const Node& call);
// Calls the function's backward. Returns a gradient for each edge; undefined gradients mean 0. Throws Error (invalid) with
// the function's name for gradients that do not fit.
std::vector<Tensor> gradients_of_call(Node& call, const std::vector<CallPart>& parts);

// Returns the function's saved values and their versions, for checkpoints.
Kept saved_of_call(const Node& call);
// Returns whether there was a saved value.
bool drop_saved_of_call(Node& call);
void give_saved_to_call(Node& call, const Kept& kept);

}  // namespace plugrad
