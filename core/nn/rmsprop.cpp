#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <utility>

namespace plugrad::nn {
namespace {
enum { kRmsRate, kRmsAlpha, kRmsEpsilon, kRmsWeightDecay, kRmsMomentum, kRmsCentered, kRmsMaximize };
enum { kRmsSquares, kRmsVelocity, kRmsMean };
}  // namespace

RMSprop::RMSprop(ParameterGroups parameters, double lr, RMSpropOptions options)
    : Optimizer("rmsprop",
                {{"lr", lr},
                 {"alpha", options.alpha, 1},
                 {"eps", options.epsilon},
                 {"weight_decay", options.weight_decay},
                 {"momentum", options.momentum},
                 flag("centered", options.centered),
                 flag("maximize", options.maximize)},
                {{"square_avg"}, {"momentum_buffer"}, {"grad_avg"}}) {
  add_groups(std::move(parameters));
}

bool RMSprop::has_slot(size_t slot, std::span<const double> options) const {
  return slot == kRmsSquares || (slot == kRmsVelocity ? options[kRmsMomentum] != 0 : options[kRmsCentered] != 0);
}

void RMSprop::update(const Update& u, Updates&) {
  const double alpha = u.options[kRmsAlpha];
  const Tensor grad = decayed(u, u.options[kRmsWeightDecay]);
  Tensor& squares = slot(kRmsSquares, u);
  squares.mul_(alpha);
  squares.add_(mul(grad, grad), 1 - alpha);
  Tensor variance = squares;
  if (u.options[kRmsCentered] != 0) {
    Tensor& mean = slot(kRmsMean, u);
    mean.mul_(alpha);
    mean.add_(grad, 1 - alpha);
    variance = sub(squares, mul(mean, mean));
  }
  const Tensor move = div(grad, add(sqrt(variance), u.options[kRmsEpsilon]));
  if (u.options[kRmsMomentum] == 0) return u.parameter.add_(move, -u.options[kRmsRate]);
  Tensor& velocity = slot(kRmsVelocity, u);
  velocity.mul_(u.options[kRmsMomentum]);
  velocity.add_(move);
  u.parameter.add_(velocity, -u.options[kRmsRate]);
}

}  // namespace plugrad::nn
