#include <plugrad/nn/optimizer.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <utility>

namespace plugrad::nn {
namespace {
enum { kRate, kAlpha, kEpsilon, kWeightDecay, kMomentum, kCentered };
enum { kSquares, kVelocity, kMean };
}  // namespace

RMSprop::RMSprop(std::vector<ParameterGroup> groups, double lr, RMSpropOptions options)
    : Optimizer("rmsprop",
                {{"lr", lr},
                 {"alpha", options.alpha, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 {"momentum", options.momentum},
                 {"centered", options.centered ? 1.0 : 0.0}},
                {{"square_avg"}, {"momentum_buffer"}, {"grad_avg"}}) {
  add_groups(std::move(groups));
}
RMSprop::RMSprop(std::vector<Tensor> parameters, double lr, RMSpropOptions options)
    : RMSprop(std::vector<ParameterGroup>{{std::move(parameters)}}, lr, options) {}

bool RMSprop::has_slot(size_t slot, std::span<const double> options) const {
  return slot == kSquares || (slot == kVelocity ? options[kMomentum] != 0 : options[kCentered] != 0);
}

void RMSprop::update(const Update& u, Updates&) {
  const double alpha = u.options[kAlpha];
  const Tensor grad = u.options[kWeightDecay] != 0 ? add(u.grad, mul(u.parameter, u.options[kWeightDecay])) : u.grad;
  Tensor& squares = slot(kSquares, u);
  squares.mul_(alpha);
  squares.add_(mul(grad, grad), 1 - alpha);
  Tensor variance = squares;
  if (u.options[kCentered] != 0) {
    Tensor& mean = slot(kMean, u);
    mean.mul_(alpha);
    mean.add_(grad, 1 - alpha);
    variance = sub(squares, mul(mean, mean));
  }
  const Tensor move = div(grad, add(sqrt(variance), u.options[kEpsilon]));
  if (u.options[kMomentum] == 0) return u.parameter.add_(move, -u.options[kRate]);
  Tensor& velocity = slot(kVelocity, u);
  velocity.mul_(u.options[kMomentum]);
  velocity.add_(move);
  u.parameter.add_(velocity, -u.options[kRate]);
}

}  // namespace plugrad::nn
