// Writing in place. While recording, a write into a leaf that requires a gradient is an error. Any other write makes the
// tensor the result of the write, if the tensor was the result of an op or the source requires a gradient.
#include <core/autograd/hooks.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <core/ops/write.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/transform.hpp>
#include <plugrad/ops/views.hpp>

#include <functional>

namespace plugrad {
namespace {
constexpr auto kUnchanged = gradient([](const Tensor& grad) { return grad; });

// Bools, integers, floating and complex dtypes: each kind holds those before it.
int rank_of_kind(DType dtype) { return static_cast<int>(dtype_info(static_cast<uint8_t>(dtype))->kind); }

// x = op(x, operand)
void write(Tensor& x, Op op, const Operand& operand) {
  if (!x.count()) return;
  raise_version(x);
  run(op, {x}, {x, operand});
}
}  // namespace

Tensor fitting(const Tensor& x, const Tensor& source) {
  const Tensor here = cast(to(source, x.device()), x.dtype());
  const Tensor fits = expand(here, x.shape());
  return fits.impl().storage.get() == storage_of(x) && !fits.is_same(x) ? clone(fits) : fits;
}

void require_unshared(const Tensor& x, const char* what, uint32_t handles) {
  if (storage_of(x)->refs.load(std::memory_order_acquire) <= handles) return;
  throw Error(Code::invalid, std::string("[") + what +
                                 "] views or other tensors share the memory of this tensor, and the graph cannot record "
                                 "that this write changes them: write into a clone, or switch recording off (no_grad in "
                                 "Python, NoGrad in C++)");
}

void Tensor::copy_(const Tensor& source) {
  static constexpr auto kRule = rule("copy_", kUnchanged, kNoGradient);
  require_writable(*this, "copy_");
  require_defined(source, "copy_");
  if (source.is_same(*this)) return;
  const Tensor from = fitting(*this, source);
  const bool recorded = is_recorded(*this, &from);
  if (recorded) require_unshared(*this, "copy_");
  if (!count()) return;
  raise_version(*this);
  run(Op::COPY, {*this}, {from});
  if (recorded) (void)differentiable(kRule, *this, from, *this);
}

void Tensor::fill_(Number value) {
  static constexpr auto kRule = rule("fill_", kNoGradient);
  require_writable(*this, "fill_");
  const Immediate number = number_operand(Op::FILL, dtype_of(*this), value);
  const bool recorded = is_recorded(*this, nullptr);
  if (recorded) require_unshared(*this, "fill_");
  if (!count()) return;
  raise_version(*this);
  run(Op::FILL, {*this}, {number});
  if (recorded) (void)differentiable(kRule, *this, *this);
}

void Tensor::add_(const Tensor& other, Number scale) {
  static constexpr auto kRule = rule("+", kUnchanged, kUnchanged);
  require_writable(*this, "add_");
  require(Op::ADD, other);
  if (&device_of(*this) != &device_of(other)) throw_not_together("add_", *this, other);
  require_number_dtype(Op::ADD, dtype_of(*this));
  if (promote_types(dtype(), other.dtype()) != dtype() && is_inexact(other.dtype()) &&
      rank_of_kind(other.dtype()) > rank_of_kind(dtype()))
    throw Error(Code::invalid, std::string("[add_] the sum is ") + dtype_name(other.dtype()) + ", which a tensor of " +
                                   dtype_name(dtype()) + " cannot hold: cast one of them");
  // The product needs the wider dtype: -1 * u8 wraps, even if this tensor holds the result.
  const auto scaled = [&] { return mul(cast(other, promote_types(dtype(), other.dtype())), scale); };
  const Tensor term = fitting(*this, !scale.source() && scale.real() == 1 ? other : scaled());
  const bool recorded = is_recorded(*this, &term);
  if (recorded) require_unshared(*this, "add_");
  write(*this, Op::ADD, term);
  if (recorded) (void)differentiable(kRule, *this, *this, term);
}

void Tensor::mul_(Number factor) {
  static constexpr auto kRule = rule("*", gradient<kPayload>([](const Tensor& grad, Number by) { return mul(grad, by); }));
  require_writable(*this, "mul_");
  require_number_dtype(Op::MUL, dtype_of(*this));
  const bool recorded = is_recorded(*this, nullptr);
  if (recorded) require_unshared(*this, "mul_");
  write(*this, Op::MUL, number_operand(Op::MUL, dtype_of(*this), factor));
  if (recorded) (void)differentiable(kRule, factor, *this, *this);
}

namespace {
void require_holds(const Tensor& x, const Tensor& result, const char* name) {
  if (rank_of_kind(result.dtype()) > rank_of_kind(x.dtype()))
    refuse(name, std::string("the result is ") + dtype_name(result.dtype()) + ", which a tensor of " +
                     dtype_name(x.dtype()) + " cannot hold: cast one of them");
  if (result.shape() != x.shape())
    refuse(name, "the result has shape " + result.shape().text() + ", and this tensor " + x.shape().text() +
                     ": use the function that returns a new tensor");
}

// x's elements in new memory, at the same place in the graph: a function may save the copy, and x may then change.
Tensor kept_copy(const Tensor& x) {
  const Tensor copy = clone(ungraphed(x));
  copy.impl().node = x.impl().node;
  return copy;
}
}  // namespace

void transform(Tensor& x, const char* name, const std::function<Tensor(const Tensor&)>& function) {
  require_writable(x, name);
  const bool recorded = is_recorded(x, nullptr);
  if (recorded) require_unshared(x, name);
  Tensor result = function(recorded ? kept_copy(x) : x);
  require_holds(x, result, name);
  if (!recorded && is_recorded(x, &result)) {  // by another operand, and x may be saved for its gradient
    result = Tensor();
    require_unshared(x, name);
    result = function(kept_copy(x));
  }
  x.copy_(result);
}

namespace {
// Gives a leaf the memory of a second tensor, and the gradient `grad`. The leaf keeps its node: the graph and hooks refer to
// the node.
void exchange(Tensor& leaf, const Tensor& memory, const Tensor& grad) {
  Impl& impl = leaf.impl();
  // Not an error: an optimiser's state follows its parameter once.
  observe::fail("it moves or converts a tensor in place: do that outside");
  observe::note_change(*impl.storage);
  impl.device = &device_of(memory);
  impl.storage = memory.impl().storage;
  impl.view = view_of(memory);
  if (Node* node = holder(leaf)) {
    node->dtype = dtype_of(memory);
    node->grad = grad;
  }
  refresh_hooked_leaf(leaf);
}

void require_leaf(const Tensor& x, const char* name, const char* instead) {
  require_defined(x, name);
  if (!x.is_leaf())
    throw Error(Code::invalid,
                std::string("[") + name + "] this tensor is the result of an op, and only leaves change so: " + instead);
}
}  // namespace

void Tensor::move_to_(Device device) {
  require_leaf(*this, "move_to_", "copy it with to()");
  const NoGrad unrecorded;
  exchange(*this, plugrad::to(detach(), device), grad().defined() ? plugrad::to(grad(), device) : Tensor());
}

void Tensor::convert_(DType wanted) {
  require_leaf(*this, "convert_", "convert it with cast()");
  if (requires_grad() && !is_inexact(wanted))
    throw Error(Code::invalid, std::string("[convert_] this tensor requires a gradient, and ") + dtype_name(wanted) +
                                   " has none: give a floating or complex dtype");
  const NoGrad unrecorded;
  exchange(*this, cast(detach(), wanted), grad().defined() ? cast(grad(), wanted) : Tensor());
}

}  // namespace plugrad
