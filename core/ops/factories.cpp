#include <plugrad/ops/factories.hpp>

#include <core/ops/extent.hpp>
#include <core/ops/run.hpp>
#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/generator.hpp>
#include <core/tensor/checked.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/integers.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace plugrad {

Tensor full(const Shape& shape, Number value, DType dtype, Device device) {
  DeviceState& state = state_of(device);
  return filled(state, dense_view(shape, id_of(dtype), state.info.alignment), id_of(dtype), value);
}
Tensor zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0, dtype, device); }
Tensor ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1, dtype, device); }
Tensor scalar(Number value, DType dtype, Device device) { return full({}, value, dtype, device); }

Tensor full_like(const Tensor& like, Number value) {
  require(Op::FILL, like);
  return filled(device_of(like), view_of(like), dtype_of(like), value);
}
Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

namespace {
int64_t arange_count(Number start, Number end, Number step) {
  if (step.real() == 0) throw Error(Code::invalid, "[arange] step 0 never reaches the end");
  if (!start.floating() && !end.floating() && !step.floating()) {
    const int64_t by = step.integer();
    int64_t distance = 0;
    if (__builtin_sub_overflow(end.integer(), start.integer(), &distance))
      throw Error(Code::invalid, "[arange] from " + std::to_string(start.integer()) + " to " +
                                     std::to_string(end.integer()) + " there are more numbers than a tensor can have");
    if (by == -1) return std::max<int64_t>(distance == INT64_MIN ? INT64_MAX : -distance, 0);
    const int64_t count = distance / by + (distance % by != 0 && (distance < 0) == (by < 0));
    return std::max<int64_t>(count, 0);
  }
  const double count = std::ceil((end.real() - start.real()) / step.real());
  if (!(count < 9e18)) throw Error(Code::invalid, "[arange] start, end and step do not give a finite number of elements");
  return count > 0 ? static_cast<int64_t>(count) : 0;
}
}  // namespace

Tensor arange(Number start, Number end, Number step, DType dtype, Device device) {
  if (dtype == DType::boolean)
    throw Error(Code::invalid, "[arange] bool does not count: give a dtype of numbers, such as i64 or f32");
  const Immediate first = number_operand(Op::IOTA, id_of(dtype), start), by = number_operand(Op::IOTA, id_of(dtype), step);
  if (std::isfinite(end.real())) number_operand(Op::IOTA, id_of(dtype), end);
  Tensor out = empty(Op::IOTA, state_of(device), {arange_count(start, end, step)}, id_of(dtype));
  if (out.count()) run(Op::IOTA, {out}, {first, by});
  return out;
}

namespace {
// start, start + step, ...: `count` numbers.
Tensor counted(int64_t count, double start, double step, DType dtype, Device device) {
  Tensor out = empty(Op::IOTA, state_of(device), {count}, id_of(dtype));
  const uint8_t kind = id_of(dtype);
  if (count) run(Op::IOTA, {out}, {immediate(kind, start, 0), immediate(kind, step, 0)});
  return out;
}

// Counts from both ends: the last number is exact and the numbers are symmetric.
Tensor evenly_spaced(double start, double end, int64_t steps, DType dtype, Device device) {
  const double step = (end - start) / static_cast<double>(steps - 1);
  const int64_t half = steps / 2;
  const Tensor upper = counted(steps - half, end, -step, dtype, device);
  return cat({counted(half, start, step, dtype, device), slice(upper, 0, -1, half - steps - 1, -1)});
}

// (start (steps - 1) + i (end - start)) / (steps - 1), rounded towards zero.
Tensor evenly_spaced_integers(int64_t start, int64_t end, int64_t steps, DType dtype, Device device) {
  const int64_t intervals = steps - 1;
  const int64_t length = Extent(end) - start;
  static_cast<void>(Extent(length) * intervals);  // the last product
  const Tensor numerators = add(mul(arange(0, steps, 1, DType::i64, device), length), int64_t{Extent(start) * intervals});
  return cast(mul(sign(numerators), floor_divide(abs(numerators), intervals)), dtype);
}
}  // namespace

Tensor linspace(double start, double end, int64_t steps, DType dtype, Device device) {
  const uint8_t kind = id_of(dtype);
  if (steps < 0 || dtype == DType::boolean)
    throw Error(Code::invalid, "[linspace] " + std::to_string(steps) + " numbers of " + dtype_name(dtype) +
                                   ": give 0 or more, and a dtype of numbers");
  number_operand(Op::IOTA, kind, start);
  number_operand(Op::IOTA, kind, end);
  if (steps < 2) return full({steps}, start, dtype, device);
  if (is_floating(dtype)) return evenly_spaced(start, end, steps, dtype, device);
  return evenly_spaced_integers(Number(start).integer(), Number(end).integer(), steps, dtype, device);
}

Tensor logspace(double start, double end, int64_t steps, double base, DType dtype, Device device) {
  require_floating(Op::POW, id_of(dtype));
  const Tensor powers = linspace(start, end, steps, accumulator_of(dtype), device);
  return cast(pow(base, powers), dtype);
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  Tensor made = empty(state_of(device), shape, id_of(dtype));
  stand_ins::note_made(*storage_of(made));  // no op does
  return made;
}
Tensor empty_like(const Tensor& like) {
  require(Op::FILL, like);
  return empty(like.shape(), like.dtype(), like.device());
}

namespace {
// The parts of complex numbers, drawn together.
template <class Draw> Tensor complex_of_parts(Shape shape, Draw draw) {
  if (shape.rank() == PLUGRAD_MAX_RANK) return complex(draw(shape), draw(shape));
  shape.push_back(2);
  return view_as_complex(draw(shape));
}

// Draws numbers from the device's generator and advances it by the counters they use.
Tensor random(Op op, const Shape& shape, DType dtype, Device device) {
  require_floating(op, id_of(dtype));
  DeviceState& state = state_of(device);
  Tensor out = empty(op, state, shape, id_of(dtype));
  if (!out.count()) return out;
  const uint64_t per_counter = accumulator_of(dtype) == DType::f32 ? 4 : 2;
  Generator& generator = generator_of(state);
  const uint64_t first = generator.offset.fetch_add((static_cast<uint64_t>(out.count()) + per_counter - 1) / per_counter);
  const Immediate seed = immediate(PLUGRAD_I64, 0, static_cast<int64_t>(generator.seed.load())),
                  offset = immediate(PLUGRAD_I64, 0, static_cast<int64_t>(first));
  run(op, {out}, {seed, offset});
  return out;
}

// The largest number of a floating dtype below `end`.
double last_below(DType dtype, double end) {
  double last = 0;
  with_element_type(id_of(dtype), [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      const T nearest = static_cast<T>(end);
      last = nearest < end ? nearest : std::nextafter(nearest, -std::numeric_limits<T>::infinity());
    } else if constexpr (sizeof(T) == 2 && is_floating(element_dtype<T>)) {
      T half(end);
      if (half >= end && half == 0) half.bits = 0x8001;
      else if (half >= end) half.bits = static_cast<uint16_t>(half.bits + (half > 0 ? -1 : 1));
      last = half;
    }
  });
  return last;
}
}  // namespace

Tensor rand(const Shape& shape, DType dtype, Device device, double low, double high) {
  const NoGrad constant;
  if (is_complex(dtype))
    return complex_of_parts(shape, [&](const Shape& all) { return rand(all, part_of(dtype), device, low, high); });
  if (accumulator_of(dtype) != dtype && is_floating(dtype))  // rounding may reach high, but high is excluded
    return minimum(cast(rand(shape, accumulator_of(dtype), device, low, high), dtype), last_below(dtype, high));
  const Tensor unit = random(Op::UNIFORM, shape, dtype, device);
  if (low == 0 && high == 1) return unit;
  const Tensor moved = add(mul(unit, high - low), low);
  if (low == 0 || !(low < high)) return moved;
  // Adding low may round up to high, but high is excluded.
  return minimum(moved, last_below(dtype, high));
}

Tensor randn(const Shape& shape, DType dtype, Device device, double mean, double deviation) {
  const NoGrad constant;
  // The parts have half of the variance.
  if (is_complex(dtype)) {
    const double of_part = deviation / std::numbers::sqrt2;
    const auto draw = [&](const Shape& all) { return randn(all, part_of(dtype), device, 0, of_part); };
    const Tensor drawn = complex_of_parts(shape, draw);
    return mean == 0 ? drawn : add(drawn, mean);
  }
  const Tensor unit = random(Op::NORMAL, shape, dtype, device);
  return mean == 0 && deviation == 1 ? unit : add(mul(unit, deviation), mean);
}

}  // namespace plugrad
