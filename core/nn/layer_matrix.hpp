// A layer of Values as a matrix. Value by value, a network records a node for each multiplication and spends its time on
// these nodes. As a matrix product, a layer records a few nodes, with the same leaves and the same gradients.
#pragma once
#include <core/autograd/node.hpp>
#include <plugrad/nn/value.hpp>

#include <mutex>
#include <thread>
#include <vector>

namespace plugrad {

// Gathers tensors of rank 0 on one device into a tensor of rank 1. Each value receives its element's gradient.
Tensor gather_values(const std::vector<Tensor>& values);
// Returns the elements of a tensor of rank 1 as Values. Their previous() are the values gathered into the operands of x.
std::vector<Value> spread_values(const Tensor& x);
// is_spread: whether spread_values made the node. values_behind: the gathered values from which such a node was computed.
bool is_spread(const Node& node);
std::vector<Value> values_behind(const Node& node);

// The weights and biases of a layer, gathered again only after they change. One thread at a time keeps them here; other
// threads gather their own matrix, because graphs of different threads may share only leaves.
class LayerMatrix {
 public:
  struct Parameters {
    Tensor weights, biases;  // (nout, nin), (nout)
  };
  // Returns undefined tensors if the neurons form no matrix because widths, kinds or devices differ.
  Parameters parameters(const std::vector<Neuron>& neurons);

 private:
  struct Leaf {
    const Node* node;
    uint32_t version;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  // The current leaves; empty if the neurons form no matrix.
  static std::vector<Leaf> leaves_of(const std::vector<Neuron>& neurons);
  static Parameters gathered(const std::vector<Neuron>& neurons);
  bool is_current(const std::vector<Leaf>& leaves) const;

  std::mutex mutex_;  // never waited for: a thread that finds it locked gathers for itself
  std::thread::id owner_;
  std::vector<Leaf> leaves_;
  Parameters kept_;
};

}  // namespace plugrad
