// Switches recording on and off, and computes gradients.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Disables recording on this thread for its lifetime.
class PLUGRAD_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  uint32_t before_;
};

// Enables recording on this thread for its lifetime, for use inside a NoGrad.
class PLUGRAD_API EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  uint32_t before_;
};

// Whether ops are recorded on this thread.
PLUGRAD_API bool grad_enabled();

// Makes a leaf with a gradient, like requires_grad_(), but notes that nobody asked for the gradient. For language bindings
// with constructors that track by default. Throws Error as requires_grad_ does.
PLUGRAD_API void track_unasked(Tensor& leaf);
// Returns whether x is a parameter for modules and optimisers: a leaf with a gradient from requires_grad_(), even if
// requires_grad_(false) has switched it off since. Throws Error (invalid) for an undefined tensor.
PLUGRAD_API bool is_parameter(const Tensor& x);

struct GradOptions {
  std::vector<Tensor> seeds = {};  // a seed per output, in its shape; if left out, 1 for an output of one element
  bool retain_graph = false;
  bool create_graph = false;  // the gradients can be differentiated again; implies retain_graph
  bool allow_unused = false;  // returns an undefined tensor for an input outside the outputs' graph
};

// Returns the gradient of the sum of outputs for each input (a leaf or a result). Leaves every .grad unchanged.
// Throws Error (invalid) as Tensor::backward does, and for an input outside the outputs' graph.
PLUGRAD_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                     const GradOptions& options = {});

// Tensor::backward from several roots in one pass.
PLUGRAD_API void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& seeds = {},
                          BackwardOptions options = {});

}  // namespace plugrad
