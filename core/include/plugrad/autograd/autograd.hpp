// Recording, and gradients as a function.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <vector>

namespace plugrad {

// Nothing is recorded on this thread while it lives.
class PLUGRAD_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  uint32_t before_;
};

// Recording on again, inside a NoGrad.
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

struct GradOptions {
  std::vector<Tensor> seeds = {};  // one per output, of its shape; 1 for outputs of one element where empty or undefined
  bool retain_graph = false;
  bool create_graph = false;       // the gradients can be differentiated again; implies retain_graph
  bool allow_unused = false;       // an input that no output depends on gives an undefined tensor instead of an error
};

// The gradients of the sum of outputs for each of inputs (leaves or results), without touching any .grad.
// Throws Error (invalid) as Tensor::backward does, and for inputs that no output depends on.
PLUGRAD_API std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                     const GradOptions& options = {});

// backward from several roots in one pass.
PLUGRAD_API void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& seeds = {},
                          BackwardOptions options = {});

}  // namespace plugrad
