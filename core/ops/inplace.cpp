// Writing in place.
#include <core/autograd/hooks.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
// source as an operand of x: on x's device, in its dtype, broadcast to its shape, and copied if they share storage.
Tensor fitting(const Tensor& x, const Tensor& source) {
  const Tensor here = cast(to(source, x.device()), x.dtype());
  const Tensor fits = expand(here, x.shape());
  return fits.impl().storage.get() == storage_of(x) && !fits.is_same(x) ? clone(fits) : fits;
}

// x = op(x, operand)
void write(Tensor& x, Op op, const Operand& operand) {
  if (!x.count()) return;
  raise_version(x);
  run(op, {x}, {x, operand});
}
}  // namespace

void Tensor::copy_(const Tensor& source) {
  require_writable(*this, "copy_");
  require_defined(source, "copy_");
  const NoGrad unrecorded;
  const Tensor from = fitting(*this, source);
  if (!count() || from.is_same(*this)) return;
  raise_version(*this);
  run(Op::COPY, {*this}, {from});
}

void Tensor::fill_(Number value) {
  require_writable(*this, "fill_");
  const Immediate number = number_operand(Op::FILL, dtype_of(*this), value);
  if (!count()) return;
  raise_version(*this);
  run(Op::FILL, {*this}, {number});
}

void Tensor::add_(const Tensor& other, Number scale) {
  require_writable(*this, "add_");
  require(Op::ADD, other);
  if (&device_of(*this) != &device_of(other)) throw_not_together("add_", *this, other);
  require_number_dtype(Op::ADD, dtype_of(*this));
  if (promote_types(dtype(), other.dtype()) != dtype() && is_floating(other.dtype()) && !is_floating(dtype()))
    throw Error(Code::invalid, std::string("[add_] the sum is ") + dtype_name(other.dtype()) + ", which a tensor of " +
                                   dtype_name(dtype()) + " cannot hold: cast one of them");
  const NoGrad unrecorded;
  const Tensor term = fitting(*this, scale.real() == 1 ? other : mul(other, scale));
  write(*this, Op::ADD, term);
}

void Tensor::mul_(Number factor) {
  require_writable(*this, "mul_");
  require_number_dtype(Op::MUL, dtype_of(*this));
  write(*this, Op::MUL, number_operand(Op::MUL, dtype_of(*this), factor));
}

void Tensor::move_to_(Device device) {
  require_defined(*this, "move_to_");
  if (!is_leaf())
    throw Error(Code::invalid, "[move_to_] this tensor is the result of an op, and only leaves move: copy it with to()");
  const NoGrad unrecorded;
  const Tensor there = plugrad::to(detach(), device);
  Tensor grad_there;
  if (grad().defined()) grad_there = plugrad::to(grad(), device);
  impl_->device = &device.state();
  impl_->storage = there.impl().storage;
  impl_->view = view_of(there);
  if (grad_there.defined()) set_grad(grad_there);
  refresh_hooked_leaf(*this);
}

}  // namespace plugrad
