#include <core/io/onnx/ops/tables.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/runtime/error.hpp>

#include <cmath>

namespace plugrad::io::onnx {
namespace {

// Steps of optimisers over several tensors: inputs rate, count, tensors, gradients, and a list of each kind of state.
Values update(const Call& c, size_t states, Values (*step)(const Call& c, const std::vector<Tensor>& x)) {
  const size_t kinds = 2 + states;
  if (c.inputs() < 2 || (c.inputs() - 2) % kinds) throw Error(Code::invalid, "the numbers of tensors differ");
  const size_t count = (c.inputs() - 2) / kinds;
  Values results((1 + states) * count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<Tensor> own;
    for (size_t k = 0; k < kinds; ++k) own.push_back(c.tensor(2 + k * count + i));
    const Values updated = step(c, own);
    for (size_t k = 0; k < updated.size(); ++k) results[k * count + i] = c.like(updated[k].tensor, 2 + i);
  }
  return results;
}

Tensor regularized(const Call& c, const std::vector<Tensor>& x) {
  return add(mul(x[0], c.real("norm_coefficient", 0)), x[1]);
}

Values adagrad(Call& c) {
  return update(c, 1, [](const Call& k, const std::vector<Tensor>& x) -> Values {
    const Tensor rate = div(k.tensor(0), add(mul(k.tensor(1), k.real("decay_factor", 0)), 1)), gradient = regularized(k, x);
    const Tensor squares = add(x[2], mul(gradient, gradient));
    return {sub(x[0], div(mul(rate, gradient), add(sqrt(squares), k.real("epsilon", 1e-6)))), squares};
  });
}

Values momentum(Call& c) {
  return update(c, 1, [](const Call& k, const std::vector<Tensor>& x) -> Values {
    const double alpha = k.real("alpha", 0);
    const Tensor gradient = regularized(k, x),
                 factor = where(gt(k.tensor(1), 0), k.real("beta", 0), cast(ge(k.tensor(1), 0), x[0].dtype()));
    const Tensor velocity = add(mul(x[2], alpha), mul(factor, gradient));
    const bool nesterov = k.text("mode", "") == "nesterov";
    const Tensor change = nesterov ? add(gradient, mul(velocity, alpha)) : velocity;
    return {sub(x[0], mul(k.tensor(0), change)), velocity};
  });
}

Values adam(Call& c) {
  return update(c, 2, [](const Call& k, const std::vector<Tensor>& x) -> Values {
    const double alpha = k.real("alpha", 0.9), beta = k.real("beta", 0.999);
    const Tensor gradient = regularized(k, x), count = cast(k.tensor(1), x[0].dtype());
    const Tensor velocity = add(mul(x[2], alpha), mul(gradient, 1 - alpha));
    const Tensor squares = add(mul(x[3], beta), mul(mul(gradient, gradient), 1 - beta));
    const Tensor bias = div(sqrt(sub(1, pow(beta, count))), sub(1, pow(alpha, count)));
    const Tensor rate = where(gt(count, 0), mul(k.tensor(0), bias), k.tensor(0));
    const Tensor moved = sub(x[0], mul(rate, div(velocity, add(sqrt(squares), k.real("epsilon", 1e-6)))));
    return {mul(moved, 1 - k.real("norm_coefficient_post", 0)), velocity, squares};
  });
}

constexpr Operator kTraining[] = {
    {"ai.onnx.preview.training.Adagrad", adagrad},
    {"ai.onnx.preview.training.Momentum", momentum},
    {"ai.onnx.preview.training.Adam", adam},
};
}  // namespace

std::span<const Operator> training_operators() { return kTraining; }

}  // namespace plugrad::io::onnx
