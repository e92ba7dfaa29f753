// Derivatives of functions, and comparisons of derivatives with differences.
//
// A function takes tensors and returns tensors. It is called while recording is on, and its inputs require gradients. The
// inputs are handles outside the caller's graph, or, with create_graph, copies inside the caller's graph.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace plugrad {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

// Returns f's results and the product of v with the Jacobian of f: a tensor for each input, in the input's shape. v: a
// tensor for each result, in the result's shape; may be left out for a single result of 1 element. create_graph: the results
// and the products have a graph. Throws Error (invalid) unless inputs are floating and v fits.
PLUGRAD_API std::pair<std::vector<Tensor>, std::vector<Tensor>> vjp(const TensorFunction& f,
                                                                    const std::vector<Tensor>& inputs,
                                                                    const std::vector<Tensor>& v = {},
                                                                    bool create_graph = false);
// Returns f's results and the product of the Jacobian of f with v: a tensor for each result, in the result's shape. v: a
// tensor for each input, in the input's shape. Takes two backward passes. Throws as vjp does.
PLUGRAD_API std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction& f,
                                                                    const std::vector<Tensor>& inputs,
                                                                    const std::vector<Tensor>& v, bool create_graph = false);

// Returns the Jacobians [result][input], each with the result's shape followed by the input's shape. Takes a pass for each
// element of the results. Throws Error (invalid) unless inputs are floating, and for ranks above 8.
PLUGRAD_API std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                      bool create_graph = false);
// Returns the second derivatives [input][input] of a function with a single result of 1 element. Throws as jacobian does.
PLUGRAD_API std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                     bool create_graph = false);

struct GradcheckOptions {
  double eps = 1e-6;  // the step of the central differences
  double atol = 1e-5, rtol = 1e-3;
};
// Compares the gradients of f's floating results for each input that requires a gradient with central differences: |gradient
// - difference| <= atol + rtol |difference|. Throws Error (invalid) for the first gradient outside this bound, with the
// result, the input, their elements and both numbers, and if no input requires a gradient. The defaults are for f64.
PLUGRAD_API void gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options = {});
// Compares the gradients of the gradients, with respect to the inputs and to the seeds of f's results, as gradcheck does.
// seeds: a tensor for each floating result; chosen by this function if left out.
PLUGRAD_API void gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& seeds = {}, GradcheckOptions options = {});

}  // namespace plugrad
