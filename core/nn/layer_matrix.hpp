// A layer of Values as a matrix. Value by value a network is a node for each multiplication, and its time goes into making
// and walking them; as a matrix product a layer is a few nodes, with the same leaves and the same gradients.
#pragma once
#include <core/autograd/node.hpp>
#include <plugrad/nn/value.hpp>

#include <mutex>
#include <thread>
#include <vector>

namespace plugrad {

// Rank 0 tensors as one of rank 1; each gets its element's gradient. All share a device.
Tensor gather_values(const std::vector<Tensor>& values);
// The elements of a tensor of rank 1 as Values, whose previous() are the values that it was gathered from.
std::vector<Value> spread_values(const Tensor& x);
// Whether spread_values made it, and, if so, the values behind it.
bool is_spread(const Node& node);
std::vector<Value> values_behind(const Node& node);

// The weights and biases of a layer, gathered once for each change of them. One thread at a time keeps them here; others
// gather their own, so that their graphs share leaves only.
class LayerMatrix {
 public:
  struct Parameters {
    Tensor weights, biases;  // (nout, nin), (nout)
  };
  // Undefined tensors where the neurons are no matrix: widths, kinds or devices differ.
  Parameters parameters(const std::vector<Neuron>& neurons);

 private:
  struct Leaf {
    const Node* node;
    uint32_t version;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  // All leaves as they are now; none where the neurons are no matrix.
  static std::vector<Leaf> leaves_of(const std::vector<Neuron>& neurons);
  static Parameters gathered(const std::vector<Neuron>& neurons);
  bool is_current(const std::vector<Leaf>& leaves) const;

  std::mutex mutex_;  // never waited for: who finds it taken gathers for itself
  std::thread::id owner_;
  std::vector<Leaf> leaves_;
  Parameters kept_;
};

}  // namespace plugrad
