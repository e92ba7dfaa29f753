#include <plugrad/nn/optimizers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace plugrad::nn {
namespace {
enum {
  kMuonRate,
  kMuonWeightDecay,
  kMuonMomentum,
  kMuonNesterov,
  kMuonA,
  kMuonB,
  kMuonC,
  kMuonEpsilon,
  kMuonSteps,
  kMuonScale
};

constexpr double kAny = std::numeric_limits<double>::max();  // the limit of an option without limits

double scale_of(MuonScale scale, const Shape& shape) {
  const double rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  if (scale == MuonScale::match_rms_adamw) return 0.2 * std::sqrt(std::max(rows, columns));
  const double ratio = std::sqrt(rows / columns);
  return scale == MuonScale::original ? std::max(1.0, ratio) : ratio;
}

// Moves the singular values of a matrix towards 1 by steps of the polynomial a x + b x^3 + c x^5.
Tensor orthogonalized(const Tensor& matrix, std::span<const double> options) {
  const bool is_tall = matrix.shape()[0] > matrix.shape()[1];
  Tensor x = is_tall ? transpose(matrix) : matrix;
  x = div(x, maximum(sqrt(sum(mul(x, x))), options[kMuonEpsilon]));
  for (int i = 0; i < static_cast<int>(options[kMuonSteps]); ++i) {
    const Tensor gram = matmul(x, transpose(x));
    const Tensor factor = add(mul(gram, options[kMuonB]), mul(matmul(gram, gram), options[kMuonC]));
    x = add(mul(x, options[kMuonA]), matmul(factor, x));
  }
  return is_tall ? transpose(x) : x;
}
}  // namespace

Muon::Muon(ParameterGroups parameters, double lr, MuonOptions options)
    : Optimizer("muon",
                {{"lr", lr},
                 {"weight_decay", options.weight_decay},
                 {"momentum", options.momentum},
                 flag("nesterov", options.nesterov),
                 {"ns_a", options.a, kAny, -kAny},
                 {"ns_b", options.b, kAny, -kAny},
                 {"ns_c", options.c, kAny, -kAny},
                 {"eps", options.epsilon},
                 {"ns_steps", static_cast<double>(options.steps), 100, 0, true},
                 {"scale", static_cast<double>(options.scale), 3, 0, true}},
                {{"momentum_buffer"}}) {
  add_groups(std::move(parameters));
}

void Muon::check(std::span<const double>, const std::vector<Tensor>& parameters) const {
  for (const Tensor& each : parameters)
    if (each.defined() && each.rank() != 2)
      throw Error(Code::invalid, "[muon] a parameter has the shape " + each.shape().text() +
                                     ": Muon takes matrices; take another optimiser, such as AdamW, for the others");
}

void Muon::update(const Update& u, Updates&) {
  const double rate = u.options[kMuonRate], momentum = u.options[kMuonMomentum];
  Tensor& buffer = slot(0, u);
  buffer.mul_(momentum);
  buffer.add_(u.grad, 1 - momentum);
  const Tensor wanted = u.options[kMuonNesterov] != 0 ? add(mul(u.grad, 1 - momentum), mul(buffer, momentum)) : buffer;
  const Tensor move = orthogonalized(wanted, u.options);
  u.parameter.mul_(1 - rate * u.options[kMuonWeightDecay]);
  u.parameter.add_(move, -rate * scale_of(static_cast<MuonScale>(u.options[kMuonScale]), u.parameter.shape()));
}

}  // namespace plugrad::nn
