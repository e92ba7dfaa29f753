#include <plugrad/ops/random.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/powers.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/scans.hpp>
#include <plugrad/ops/sets.hpp>
#include <plugrad/ops/sorting.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <cmath>
#include <limits>

namespace plugrad {
namespace {
DType dtype_like(const Tensor& like, std::optional<DType> dtype, const char* name) {
  require_defined(like, name);
  return dtype.value_or(like.dtype());
}

// --- Whole numbers. A uniform of f32 is a multiple of 2^-24, the same on every device: a limb of 24 random bits.

constexpr int kLimbBits = 24;
constexpr int64_t kLimb = int64_t{1} << kLimbBits;

// `limbs` tensors of n whole numbers below 2^24.
std::vector<Tensor> random_limbs(int limbs, int64_t n, Device device) {
  const Tensor drawn = cast(mul(rand({limbs, n}, DType::f32, device), static_cast<double>(kLimb)), DType::i64);
  std::vector<Tensor> all;
  for (int i = 0; i < limbs; ++i) all.push_back(select(drawn, 0, i));
  return all;
}

Tensor high_part(const Tensor& x) { return bitwise_right_shift(x, kLimbBits); }

// The sum of the products of limbs with places that add up to `column`.
Tensor column_of(const std::vector<Tensor>& random, const std::vector<int64_t>& factors, size_t column) {
  Tensor total;
  for (size_t i = 0; i < random.size(); ++i) {
    if (column < i || column - i >= factors.size()) continue;
    const Tensor term = mul(random[i], factors[column - i]);
    total = total.defined() ? add(total, term) : term;
  }
  return total;
}

// floor(v span / 2^(24 limbs)) for the random number v below 2^(24 limbs), by long multiplication. The result has 64 bits.
Tensor scaled(const std::vector<Tensor>& random, uint64_t span) {
  std::vector<int64_t> factors;
  for (; span; span >>= kLimbBits) factors.push_back(static_cast<int64_t>(span & (kLimb - 1)));
  const size_t limbs = random.size();
  Tensor carry = high_part(column_of(random, factors, 0));
  for (size_t column = 1; column + 1 < limbs + factors.size(); ++column) {
    const Tensor total = column_of(random, factors, column);
    if (column < limbs) carry = high_part(add(carry, total));
    else carry = add(carry, mul(total, static_cast<int64_t>(uint64_t{1} << (kLimbBits * (column - limbs)))));
  }
  return carry;
}

// Whether a dtype holds a number; floating dtypes hold all numbers.
bool holds(DType dtype, int64_t number) {
  const DTypeInfo& info = *dtype_info(static_cast<uint8_t>(dtype));
  if (is_floating(dtype) || info.digits == 63) return true;
  const int64_t largest = (int64_t{1} << info.digits) - 1;
  const int64_t smallest = info.is_unsigned() || dtype == DType::boolean ? 0 : -largest - 1;
  return number >= smallest && number <= largest;
}
}  // namespace

Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device) {
  if (low >= high)
    refuse("randint", "low is " + std::to_string(low) + " and high " + std::to_string(high) + ": low must be below high");
  if (!holds(dtype, low) || !holds(dtype, high - 1))
    refuse("randint", std::string(dtype_name(dtype)) + " does not hold the numbers from " + std::to_string(low) + " to " +
                          std::to_string(high - 1) + ": give a wider dtype");
  const NoGrad constant;
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const int limbs = 2 + (span > static_cast<uint64_t>(kLimb)) + (span > uint64_t{1} << (2 * kLimbBits));
  return reshape(cast(add(scaled(random_limbs(limbs, shape.count(), device), span), low), dtype), shape);
}
Tensor randint(int64_t high, const Shape& shape, DType dtype, Device device) {
  return randint(0, high, shape, dtype, device);
}
Tensor randint_like(const Tensor& like, int64_t low, int64_t high, std::optional<DType> dtype) {
  const DType wanted = dtype_like(like, dtype, "randint_like");
  return randint(low, high, like.shape(), wanted, like.device());
}
Tensor randint_like(const Tensor& like, int64_t high, std::optional<DType> dtype) {
  return randint_like(like, 0, high, dtype);
}

Tensor randperm(int64_t n, DType dtype, Device device) {
  if (n < 0 || (n && !holds(dtype, n - 1)))
    refuse("randperm", "n is " + std::to_string(n) + ": give 0 or more, and numbers that " + dtype_name(dtype) + " holds");
  const NoGrad constant;
  const std::vector<Tensor> limbs = random_limbs(2, n, device);
  return cast(argsort(add(mul(limbs[0], kLimb), limbs[1])), dtype);  // with 48 bits two equal keys are rare
}

// --- Copies of another tensor's form.

Tensor rand_like(const Tensor& like, std::optional<DType> dtype) {
  const DType wanted = dtype_like(like, dtype, "rand_like");
  return rand(like.shape(), wanted, like.device());
}
Tensor randn_like(const Tensor& like, std::optional<DType> dtype) {
  const DType wanted = dtype_like(like, dtype, "randn_like");
  return randn(like.shape(), wanted, like.device());
}

// --- Choices.

Tensor bernoulli(const Tensor& x) {
  require_floating("bernoulli", x);
  const NoGrad constant;
  const Tensor p = at_least_f32(x.detach());
  const Tensor fits = logical_and(ge(p, 0), le(p, 1));
  const bool repeats = observe::hides_elements();  // no step can refuse elements
  if (!repeats && !all(fits).item<bool>()) refuse("bernoulli", "a probability is outside [0, 1]: give others");
  const Tensor drawn = cast(lt(rand(p.shape(), p.dtype(), p.device()), p), x.dtype());
  return repeats ? where(fits, drawn, std::nan("")) : drawn;
}

Tensor bernoulli(const Tensor& x, double p) {
  require_defined(x, "bernoulli");
  if (!(p >= 0 && p <= 1)) refuse("bernoulli", "p is " + number_text(p) + ": give a probability from 0 to 1");
  const NoGrad constant;
  return cast(lt(rand(x.shape(), x.dtype() == DType::f64 ? DType::f64 : DType::f32, x.device()), p), x.dtype());
}

namespace {
// Exponential with rate 1. In f32 a second uniform adds bits where the first has few.
Tensor unit_exponential(const Shape& shape, DType dtype, Device device) {
  Tensor u = rand(shape, dtype, device);
  if (dtype == DType::f32) u = minimum(add(u, mul(rand(shape, dtype, device), 1.0 / kLimb)), 1 - 1.0 / kLimb);
  return neg(log1p(neg(u)));
}

void require_samples(const Tensor& weights, int64_t samples, bool replacement) {
  const bool fits = (weights.rank() == 1 || weights.rank() == 2) && weights.size(-1) > 0;
  if (!fits || samples < 1)
    refuse("multinomial", "x has shape " + weights.shape().text() + ", and num_samples is " + std::to_string(samples) +
                              ": give one or two axes, the last with elements, and 1 sample or more");
  if (observe::hides_elements()) return;
  if (!all(logical_and(ge(weights, 0), isfinite(weights))).item<bool>())
    refuse("multinomial", "a weight is negative, infinite or NaN: give others");
  if (!weights.count()) return;
  const int64_t positive = min(count_nonzero(weights, {-1})).item<int64_t>();
  if (!positive) refuse("multinomial", "the weights of a line are all 0: give it a positive one");
  if (!replacement && positive < samples)
    refuse("multinomial", std::to_string(samples) + " samples without replacement of " + std::to_string(positive) +
                              " positive weights: take fewer, or pass replacement");
}

// The first index where the sum of weights so far exceeds a uniform part of the whole sum.
Tensor with_replacement(const Tensor& weights, int64_t samples) {
  const int64_t lines = weights.size(0), n = weights.size(1);
  const Tensor sums = cumsum(weights, 1), total = slice(sums, 1, n - 1, n);
  const Tensor chosen = mul(rand({lines, samples}, weights.dtype(), weights.device()), total);
  // Rounding may reach the total: the last index with a weight is right there.
  return minimum(searchsorted(sums, chosen, false, true), searchsorted(sums, total));
}

// The indices of the shortest of n waiting times with rates `weights`, in order (Efraimidis and Spirakis, "Weighted random
// sampling with a reservoir", 2006). Indices without a weight come last.
Tensor without_replacement(const Tensor& weights, int64_t samples) {
  const Tensor times = div(unit_exponential(weights.shape(), weights.dtype(), weights.device()), weights);
  const Tensor ranked = where(gt(weights, 0), times, std::numeric_limits<double>::quiet_NaN());
  return contiguous(slice(argsort(ranked, 1), 1, 0, samples));
}
}  // namespace

Tensor multinomial(const Tensor& x, int64_t num_samples, bool replacement) {
  require_floating("multinomial", x);
  const NoGrad constant;
  const Tensor weights = at_least_f32(x.detach());
  require_samples(weights, num_samples, replacement);
  const Tensor lines = weights.rank() == 1 ? unsqueeze(weights, 0) : weights;
  Tensor chosen = replacement ? with_replacement(lines, num_samples) : without_replacement(lines, num_samples);
  if (observe::hides_elements()) {  // no step can refuse elements: a sample that cannot be drawn is -1
    const Tensor usable = all(logical_and(ge(lines, 0), isfinite(lines)), {-1}, true);
    chosen = where(logical_and(usable, gt(gather(lines, 1, chosen), 0)), chosen, -1);
  }
  return weights.rank() == 1 ? squeeze(chosen, {0}) : chosen;
}

// --- Distributions.

namespace {
void require_deviation(double deviation) {
  if (!(deviation >= 0)) refuse("normal", "the deviation is " + number_text(deviation) + ": give 0 or more");
}
// Throws Error for a deviation below 0. A compiled step cannot: there it is NaN.
Tensor checked(const Tensor& deviation) {
  require_floating("normal", deviation);
  const Tensor wrong = lt(deviation, 0);
  if (observe::hides_elements()) return where(wrong, std::nan(""), deviation);
  if (any(wrong).item<bool>()) refuse("normal", "a deviation is below 0: give 0 or more");
  return deviation;
}
}  // namespace

Tensor normal(const Tensor& mean, const Tensor& deviation) {
  require_floating("normal", mean);
  if (mean.device() != deviation.device()) throw_not_together("normal", mean, deviation);
  const NoGrad constant;
  const Tensor width = checked(deviation);
  const Shape shape = broadcast_shapes(mean.shape(), width.shape());
  return add(mul(randn(shape, mean.dtype(), mean.device()), width), mean);
}
Tensor normal(const Tensor& mean, double deviation) {
  require_floating("normal", mean);
  require_deviation(deviation);
  const NoGrad constant;
  return add(mul(randn_like(mean), deviation), mean);
}
Tensor normal(double mean, const Tensor& deviation) {
  const NoGrad constant;
  const Tensor width = checked(deviation);
  return add(mul(randn_like(width), width), mean);
}
Tensor normal(double mean, double deviation, const Shape& shape, DType dtype, Device device) {
  require_deviation(deviation);
  return randn(shape, dtype, device, mean, deviation);
}

Tensor exponential(const Shape& shape, double lambd, DType dtype, Device device) {
  if (!(lambd > 0)) refuse("exponential", "lambd is " + number_text(lambd) + ": give a positive rate");
  if (!is_floating(dtype)) refuse("exponential", std::string("dtype is ") + dtype_name(dtype) + ": give a floating one");
  const NoGrad constant;
  return cast(div(unit_exponential(shape, accumulator_of(dtype), device), lambd), dtype);
}

}  // namespace plugrad
