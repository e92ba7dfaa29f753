// Derivatives of functions, and their comparison with differences.
//
// A function takes tensors and returns tensors. It is called with recording on and with tensors that require a gradient:
// handles outside the caller's graph, or, with create_graph, copies inside it.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace plugrad {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

// f's results, and the product of v with its Jacobian: one tensor for each input, in its shape. v: one tensor for each
// result, in its shape; may be left out for one result of one element. create_graph: both have a graph. Throws Error
// (invalid) for inputs that are not floating and for v that does not fit.
PLUGRAD_API std::pair<std::vector<Tensor>, std::vector<Tensor>> vjp(const TensorFunction& f,
                                                                    const std::vector<Tensor>& inputs,
                                                                    const std::vector<Tensor>& v = {},
                                                                    bool create_graph = false);
// f's results, and the product of its Jacobian with v: one tensor for each result, in its shape. v: one tensor for each
// input, in its shape. It takes two backward passes. Throws as vjp does.
PLUGRAD_API std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction& f,
                                                                    const std::vector<Tensor>& inputs,
                                                                    const std::vector<Tensor>& v, bool create_graph = false);

// The Jacobians [result][input], each of the result's shape followed by the input's. Takes one pass for each element of the
// results. Throws Error (invalid) for inputs that are not floating and for ranks beyond 8.
PLUGRAD_API std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                      bool create_graph = false);
// The second derivatives [input][input] of a function with one result of one element. Throws as jacobian does.
PLUGRAD_API std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                     bool create_graph = false);

struct GradcheckOptions {
  double eps = 1e-6;  // the step of the central differences
  double atol = 1e-5, rtol = 1e-3;
};
// Compares the gradients of f's floating results for each input that requires a gradient with central differences:
// |gradient - difference| <= atol + rtol |difference|. Throws Error (invalid), which names result, input, their elements and
// both numbers, for the first that differ, and if no input requires a gradient. The defaults are for f64.
PLUGRAD_API void gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options = {});
// The same for the gradients' own gradients, with respect to the inputs and to the seeds of f's results. seeds: one for each
// floating result; chosen if left out.
PLUGRAD_API void gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& seeds = {}, GradcheckOptions options = {});

}  // namespace plugrad
