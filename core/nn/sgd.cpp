#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/error.hpp>

#include <utility>

namespace plugrad::nn {
namespace {
enum { kSgdRate, kSgdMomentum, kSgdWeightDecay, kSgdNesterov };
}

SGD::SGD(std::vector<ParameterGroup> groups, double lr, SGDOptions options)
    : Optimizer("sgd",
                {{"lr", lr},
                 {"momentum", options.momentum},
                 {"weight_decay", options.weight_decay},
                 {"nesterov", options.nesterov ? 1.0 : 0.0}},
                {{"momentum_buffer"}}) {
  add_groups(std::move(groups));
}
SGD::SGD(std::vector<Tensor> parameters, double lr, SGDOptions options)
    : SGD(std::vector<ParameterGroup>{{std::move(parameters)}}, lr, options) {}

void SGD::check(std::span<const double> options) const {
  if (options[kSgdNesterov] != 0 && options[kSgdMomentum] == 0)
    throw Error(Code::invalid, "[sgd] nesterov needs a momentum above 0");
}

bool SGD::has_slot(size_t, std::span<const double> options) const { return options[kSgdMomentum] != 0; }

void SGD::update(const Update& u, Updates& together) {
  const SgdStep step{u.options[kSgdRate], u.options[kSgdMomentum], u.options[kSgdWeightDecay], u.options[kSgdNesterov] != 0};
  Tensor none;
  together.sgd_step(u.parameter, step.momentum != 0 ? slot(0, u) : none, u.grad, step);
}

}  // namespace plugrad::nn
