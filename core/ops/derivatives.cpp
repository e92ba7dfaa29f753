#include <plugrad/ops/derivatives.hpp>

#include <core/ops/argument.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <numeric>

namespace plugrad {
namespace {
using Tensors = std::vector<Tensor>;
using Jacobians = std::vector<std::vector<Tensor>>;

// The function's arguments: leaves of its own, or copies in the graph of the inputs.
Tensors variables(const char* name, const Tensors& inputs, bool create_graph) {
  Tensors all;
  for (const Tensor& each : inputs) {
    require_defined(each, name);
    if (!is_inexact(each.dtype()))
      refuse(name, std::string("an input is ") + dtype_name(each.dtype()) + ": expected a floating dtype");
    all.push_back(create_graph && each.requires_grad() ? clone(each) : each.detach().requires_grad_());
  }
  return all;
}

Tensors results_of(const char* name, const TensorFunction& f, const Tensors& x) {
  Tensors all = f(x);
  for (const Tensor& each : all) require_defined(each, name);
  return all;
}

void require_vectors(const char* name, const Tensors& v, const Tensors& like, const char* what) {
  if (v.size() != like.size())
    refuse(name, std::to_string(v.size()) + " tensors in v for " + std::to_string(like.size()) + " " + what +
                     ": give one for each");
  for (size_t i = 0; i < v.size(); ++i) {
    require_defined(v[i], name);
    if (v[i].shape() != like[i].shape() || v[i].dtype() != like[i].dtype())
      refuse(name, "v[" + std::to_string(i) + "] is " + dtype_name(v[i].dtype()) + " " + v[i].shape().text() +
                       " for one of the " + what + " of " + dtype_name(like[i].dtype()) + " " + like[i].shape().text());
  }
}

Tensors outside(const Tensors& x) {
  Tensors all;
  for (const Tensor& each : x) all.push_back(each.detach());
  return all;
}

// grad() with zeros where there is no gradient. It leaves out results without a graph.
Tensors gradients(const Tensors& outputs, const Tensors& inputs, const Tensors& seeds, bool create_graph,
                  bool retain_graph = false) {
  GradOptions options{.retain_graph = retain_graph, .create_graph = create_graph, .allow_unused = true};
  Tensors roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    options.seeds.push_back(seeds[i]);
  }
  Tensors all(inputs.size());
  if (!roots.empty()) all = grad(roots, inputs, options);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!all[i].defined()) all[i] = zeros_like(inputs[i].detach());
  return all;
}

// Zeros of x's shape with 1 at a row-major position.
Tensor unit(const Tensor& x, int64_t position) {
  const NoGrad unrecorded;
  const Tensor flat = zeros({x.count()}, x.dtype(), x.device());
  slice(flat, 0, position, position + 1).fill_(1);
  return reshape(flat, x.shape());
}

Shape joined(const Shape& a, const Shape& b) {
  if (a.rank() + b.rank() > PLUGRAD_MAX_RANK)
    refuse("jacobian", "a result of shape " + a.text() + " and an input of shape " + b.text() +
                           " have more axes than a tensor may have: reshape them");
  Shape all = a;
  for (const int64_t extent : b) all.push_back(extent);
  return all;
}

// The Jacobians of a result.
Tensors jacobians_of(const Tensor& result, const Tensors& x, bool create_graph) {
  std::vector<Tensors> rows(x.size());
  for (int64_t i = 0; i < result.count(); ++i) {
    const Tensors row = gradients({result}, x, {unit(result, i)}, create_graph, true);
    for (size_t j = 0; j < x.size(); ++j) rows[j].push_back(row[j]);
  }
  Tensors all;
  for (size_t j = 0; j < x.size(); ++j) {
    const Shape shape = joined(result.shape(), x[j].shape());
    all.push_back(rows[j].empty() ? zeros(shape, x[j].dtype(), x[j].device()) : reshape(stack(rows[j]), shape));
  }
  return all;
}

Jacobians jacobians(const char* name, const TensorFunction& f, const Tensors& inputs, bool create_graph) {
  const EnableGrad recorded;
  const Tensors x = variables(name, inputs, create_graph);
  Jacobians all;
  for (const Tensor& each : results_of(name, f, x)) all.push_back(jacobians_of(each, x, create_graph));
  return all;
}
}  // namespace

std::pair<Tensors, Tensors> vjp(const TensorFunction& f, const Tensors& inputs, const Tensors& v, bool create_graph) {
  const EnableGrad recorded;
  const Tensors x = variables("vjp", inputs, create_graph), results = results_of("vjp", f, x);
  const bool ones = v.empty() && results.size() == 1 && results[0].count() == 1;
  if (!ones) require_vectors("vjp", v, results, "results");
  Tensors found = gradients(results, x, ones ? Tensors{Tensor()} : v, create_graph);
  return {create_graph ? results : outside(results), std::move(found)};
}

// The product with the transposed Jacobian is linear in its vector: its gradient for that vector is the product wanted here.
std::pair<Tensors, Tensors> jvp(const TensorFunction& f, const Tensors& inputs, const Tensors& v, bool create_graph) {
  const EnableGrad recorded;
  const Tensors x = variables("jvp", inputs, create_graph), results = results_of("jvp", f, x);
  require_vectors("jvp", v, inputs, "inputs");
  Tensors seeds;
  for (const Tensor& each : results)
    seeds.push_back(is_inexact(each.dtype()) ? zeros_like(each.detach()).requires_grad_() : zeros_like(each));
  const Tensors products = gradients(results, x, seeds, true);
  Tensors wanted;
  for (const Tensor& each : seeds)
    if (each.requires_grad()) wanted.push_back(each);
  const Tensors found = gradients(products, wanted, v, create_graph);
  Tensors all;
  size_t next = 0;
  for (const Tensor& each : seeds) all.push_back(each.requires_grad() ? found[next++] : each);
  return {create_graph ? results : outside(results), std::move(all)};
}

Jacobians jacobian(const TensorFunction& f, const Tensors& inputs, bool create_graph) {
  return jacobians("jacobian", f, inputs, create_graph);
}

Jacobians hessian(const TensorFunction& f, const Tensors& inputs, bool create_graph) {
  const TensorFunction slope = [&](const Tensors& x) {
    const Tensors results = results_of("hessian", f, x);
    if (results.size() != 1 || results[0].count() != 1)
      refuse("hessian", "the function returned " + std::to_string(results.size()) + " results" +
                            (results.empty() ? "" : ", the first of shape " + results[0].shape().text()) +
                            ": expected one of one element");
    return gradients(results, x, {Tensor()}, true);
  };
  return jacobians("hessian", slope, inputs, create_graph);
}

}  // namespace plugrad
