// Losses and their gradients.
#include <ATen/Operators.h>
#include <bridge/adapt.hpp>
#include <bridge/gradient.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/losses.hpp>
#include <plugrad/ops/margin_losses.hpp>
#include <plugrad/ops/reduce.hpp>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
plugrad::Reduction reduction_of(int64_t number) {
  constexpr plugrad::Reduction kReductions[] = {plugrad::Reduction::none, plugrad::Reduction::mean, plugrad::Reduction::sum};
  return kReductions[number];
}

// A sample without an axis of batches is a batch of one.
struct Batch {
  P x, target;
  bool is_single;
};
Batch batch_of(const T& x, const T& target) {
  const P logs = over(x), classes = over(target, at::kLong);
  if (x.dim() > 1) return {logs, classes, false};
  return {plugrad::unsqueeze(logs, 0), plugrad::reshape(classes, {1}), true};
}
std::tuple<T&, T&> nll_loss_out(const T& x, const T& target, const OptT& weight, int64_t reduction, int64_t ignored, T& out,
                                T& total) {
  const Batch batch = batch_of(x, target);
  const plugrad::NllLoss made =
      plugrad::nll_loss_with_total(batch.x, batch.target, over(weight), ignored, reduction_of(reduction));
  write(out, reduction == 0 && !batch.is_single ? made.loss : plugrad::reshape(made.loss, {}));
  if (reduction != 0 || batch.is_single) write(total, plugrad::reshape(made.total_weight, {}));
  else write(total, plugrad::zeros({}, made.loss.dtype(), made.loss.device()));
  return {out, total};
}
T& nll_loss_backward_out(const T& grad, const T& x, const T& target, const OptT& weight, int64_t reduction, int64_t ignored,
                         const T& total, T& out) {
  const Batch batch = batch_of(x, target);
  P g = over(grad);
  if (batch.is_single && reduction == 0) g = plugrad::reshape(g, {1});
  const P made =
      plugrad::nll_loss_backward(g, batch.x, batch.target, over(weight), ignored, reduction_of(reduction), over(total));
  return write(out, batch.is_single ? plugrad::squeeze(made, {0}) : made);
}

// The classes of images lie on axis 1: rows of classes are made of them.
P rows_of(const P& x) { return plugrad::reshape(plugrad::permute(x, {0, 2, 3, 1}), {-1, x.size(1)}); }
std::tuple<T&, T&> nll_loss2d_out(const T& x, const T& target, const OptT& weight, int64_t reduction, int64_t ignored,
                                  T& out, T& total) {
  const P classes = over(target, at::kLong);
  const plugrad::NllLoss made = plugrad::nll_loss_with_total(rows_of(over(x)), plugrad::reshape(classes, {-1}), over(weight),
                                                             ignored, reduction_of(reduction));
  write(out, plugrad::reshape(made.loss, reduction == 0 ? classes.shape() : Shape()));
  if (reduction != 0) write(total, plugrad::reshape(made.total_weight, {}));
  else write(total, plugrad::zeros({}, made.loss.dtype(), made.loss.device()));
  return {out, total};
}
T& nll_loss2d_backward_out(const T& grad, const T& x, const T& target, const OptT& weight, int64_t reduction,
                           int64_t ignored, const T& total, T& out) {
  const P g = over(grad), input = over(x);
  const P made = plugrad::nll_loss_backward(reduction == 0 ? plugrad::reshape(g, {-1}) : g, rows_of(input),
                                            plugrad::reshape(over(target, at::kLong), {-1}), over(weight), ignored,
                                            reduction_of(reduction), over(total));
  const P images = plugrad::reshape(made, {x.size(0), x.size(2), x.size(3), x.size(1)});
  return write(out, plugrad::permute(images, {0, 3, 1, 2}));
}

using Loss = P (*)(const P&, const P&, plugrad::Reduction);
template <Loss kFunction> T loss(const T& x, const T& y, int64_t reduction) {
  return result(kFunction(over(x), over(y), reduction_of(reduction)));
}
template <Loss kFunction> T& loss_out(const T& x, const T& y, int64_t reduction, T& out) {
  return write(out, kFunction(over(x), over(y), reduction_of(reduction)));
}
P mse_gradient(const T& grad, const T& x, const T& y, int64_t reduction) {
  const double scale = reduction == 1 ? 2 / static_cast<double>(x.numel()) : 2;
  return plugrad::mul(plugrad::mul(plugrad::sub(over(x), over(y)), scale), over(grad));
}
T mse_loss_backward(const T& grad, const T& x, const T& y, int64_t reduction) {
  return result(mse_gradient(grad, x, y, reduction));
}
T& mse_loss_backward_out(const T& grad, const T& x, const T& y, int64_t reduction, T& out) {
  return write(out, mse_gradient(grad, x, y, reduction));
}

using SlopedLoss = P (*)(const P&, const P&, plugrad::Reduction, double);
template <SlopedLoss kFunction> T sloped_loss(const T& x, const T& y, int64_t reduction, double slope) {
  return result(kFunction(over(x), over(y), reduction_of(reduction), slope));
}
template <SlopedLoss kFunction> T& sloped_loss_out(const T& x, const T& y, int64_t reduction, double slope, T& out) {
  return write(out, kFunction(over(x), over(y), reduction_of(reduction), slope));
}
template <SlopedLoss kFunction>
T& sloped_loss_backward_out(const T& grad, const T& x, const T& y, int64_t reduction, double slope, T& out) {
  const P target = over(y);
  return write(out, gradient_of(over(x), over(grad),
                                [&](const P& value) { return kFunction(value, target, reduction_of(reduction), slope); }));
}

P cross_entropy(const P& x, const T& target, const OptT& weight, int64_t reduction) {
  return plugrad::binary_cross_entropy(x, over(target), over(weight), reduction_of(reduction));
}
T binary_cross_entropy(const T& x, const T& target, const OptT& weight, int64_t reduction) {
  return result(cross_entropy(over(x), target, weight, reduction));
}
T binary_cross_entropy_backward(const T& grad, const T& x, const T& target, const OptT& weight, int64_t reduction) {
  return result(
      gradient_of(over(x), over(grad), [&](const P& value) { return cross_entropy(value, target, weight, reduction); }));
}
T cross_entropy_with_logits(const T& x, const T& target, const OptT& weight, const OptT& pos_weight, int64_t reduction) {
  return result(plugrad::binary_cross_entropy_with_logits(over(x), over(target), over(weight), over(pos_weight),
                                                          reduction_of(reduction)));
}
}  // namespace
}  // namespace plugrad_torch

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::nll_loss_forward_output, nll_loss_out>(library);
  kernel<o::nll_loss_backward_grad_input, nll_loss_backward_out>(library);
  kernel<o::nll_loss2d_forward_output, nll_loss2d_out>(library);
  kernel<o::nll_loss2d_backward_grad_input, nll_loss2d_backward_out>(library);
  kernel<o::mse_loss, loss<plugrad::mse_loss>>(library);
  kernel<o::mse_loss_out, loss_out<plugrad::mse_loss>>(library);
  kernel<o::mse_loss_backward, mse_loss_backward>(library);
  kernel<o::mse_loss_backward_grad_input, mse_loss_backward_out>(library);
  kernel<o::huber_loss, sloped_loss<plugrad::huber_loss>>(library);
  kernel<o::huber_loss_out, sloped_loss_out<plugrad::huber_loss>>(library);
  kernel<o::huber_loss_backward_out, sloped_loss_backward_out<plugrad::huber_loss>>(library);
  kernel<o::smooth_l1_loss_out, sloped_loss_out<plugrad::smooth_l1_loss>>(library);
  kernel<o::smooth_l1_loss_backward_grad_input, sloped_loss_backward_out<plugrad::smooth_l1_loss>>(library);
  kernel<o::binary_cross_entropy, binary_cross_entropy>(library);
  kernel<o::binary_cross_entropy_backward, binary_cross_entropy_backward>(library);
  kernel<o::binary_cross_entropy_with_logits, cross_entropy_with_logits>(library);
}
