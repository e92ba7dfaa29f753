// The functions to compute gradients.
#include <plugrad/autograd/autograd.hpp>

#include <core/autograd/pass.hpp>
#include <core/autograd/sum.hpp>

namespace plugrad {
namespace {
Tensor checked_seed(const Tensor& output, const Tensor& seed) {
  if (!seed.defined()) {
    if (output.count() == 1) return filled_like(output, 1);
    throw Error(Code::invalid,
                "[backward] the root has shape " + output.shape().text() + ", not one element: pass a seed of that shape");
  }
  if (seed.shape() != output.shape() || seed.dtype() != output.dtype() || seed.device() != output.device())
    throw Error(Code::invalid, "[backward] a seed of " + description(seed) + " for a root of " + description(output) +
                                   ": all of these must be equal");
  return seed;
}

void add_roots(Pass& pass, const std::vector<Tensor>& outputs, const std::vector<Tensor>& seeds) {
  if (!seeds.empty() && seeds.size() != outputs.size())
    throw Error(Code::invalid, "[backward] " + std::to_string(seeds.size()) + " seeds for " +
                                   std::to_string(outputs.size()) + " outputs: expected one for each, or none");
  for (size_t i = 0; i < outputs.size(); ++i) {
    require_defined(outputs[i], "backward");
    Node* node = outputs[i].impl().node.get();
    if (!node)
      throw Error(Code::invalid,
                  "[backward] the root has no graph: no tensor behind it has requires_grad_(), recording was off, or a "
                  "compiled step returned it");
    pass.add_root(*node, checked_seed(outputs[i], seeds.empty() ? Tensor() : seeds[i]));
  }
}
}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& seeds, BackwardOptions options) {
  options.retain_graph |= options.create_graph;
  Pass pass(options);
  add_roots(pass, outputs, seeds);
  pass.run();
  pass.commit();
}

void Tensor::backward(const Tensor& seed, BackwardOptions options) const { plugrad::backward({*this}, {seed}, options); }

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const GradOptions& options) {
  Pass pass({options.retain_graph || options.create_graph, options.create_graph});
  add_roots(pass, outputs, options.seeds);
  for (const Tensor& input : inputs) {
    require_defined(input, "grad");
    if (!input.requires_grad())
      throw Error(Code::invalid,
                  "[grad] an input of shape " + input.shape().text() + " requires no gradient: call requires_grad_() first");
    pass.capture(*input.impl().node);
  }
  pass.run();
  std::vector<Tensor> grads;
  for (const Tensor& input : inputs) {
    Node& node = *input.impl().node;
    grads.push_back(pass.captured(node));
    if (!grads.back().defined() && pass.reached(node)) grads.back() = filled_like(input, 0);
    if (!grads.back().defined() && !options.allow_unused)
      throw Error(Code::invalid, "[grad] no output depends on an input of shape " + input.shape().text() +
                                     ": set allow_unused to get an undefined gradient");
  }
  return grads;
}

}  // namespace plugrad
