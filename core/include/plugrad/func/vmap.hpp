// Functions of functions: a function of one example applied to a batch of examples.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace plugrad::func {

// What random functions do inside vmap: they throw; each example has numbers of its own; or all have the same numbers.
enum class Randomness { error, different, same };

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

struct VmapOptions {
  // The axis of each input that holds the examples, or nothing for an input that all examples share. Empty: axis 0 of each.
  std::vector<std::optional<int>> in_axes = {};
  // The axis of each result that will hold the examples. Empty: axis 0 of each.
  std::vector<int> out_axes = {};
  Randomness randomness = Randomness::error;
};

// Returns f's results for all examples. f is called once: its arguments have the shape of one example, and each of its ops
// computes all examples. Gradients pass through, also to tensors that f captures, and calls nest. Inside, an element has no
// single value: item() and printing throw Error (invalid), as do writes in place into tensors from outside f.
// Throws Error (invalid) if no input has examples, or if their numbers differ or are 0.
PLUGRAD_API Tensors vmap(const Function& f, const Tensors& inputs, const VmapOptions& options = {});

// The parts of vmap, for a function that the caller calls: wrap its arguments, call it while the object lives, and unwrap
// its results. Objects end in the reverse order of their making.
class PLUGRAD_API Examples {
 public:
  // size: the number of examples, above 0.
  explicit Examples(int64_t size, Randomness randomness = Randomness::error);
  ~Examples();
  Examples(const Examples&) = delete;
  Examples& operator=(const Examples&) = delete;
  Tensor wrap(const Tensor& x, int axis) const;
  Tensor unwrap(const Tensor& y, int axis) const;

 private:
  struct Inner;
  std::unique_ptr<Inner> inner_;
};

}  // namespace plugrad::func
