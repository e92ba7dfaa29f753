#include <core/runtime/plugins/agreement.hpp>

#include <plugrad/runtime/numbers.hpp>
#include <plugrad/sdk/halves.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plugrad {
namespace {

template <class T> T at(const plugrad_view& view, int64_t element) {
  T value;
  std::memcpy(&value,
              reinterpret_cast<const char*>(view.buffer) + view.offset + element * static_cast<int64_t>(sizeof value),
              sizeof value);
  return value;
}

// The element at an offset in elements. A double represents all values except large values of i64; i64 is compared as
// integers, too.
double number_at(const plugrad_view& view, int64_t element) {
  switch (view.dtype) {
#define PLUGRAD_DTYPE(name, id, enumerator, label, type, kind, digits, exponent, accumulator, dlpack) \
  case id: return static_cast<double>(at<type>(view, element));
#include <plugrad/sdk/dtypes.def>
#undef PLUGRAD_DTYPE
    default: return 0;
  }
}

// Calls f(offset in a, offset in b), in elements, for the elements of views of the same shape, in row-major order, until it
// returns false. `index` is the index of the current element.
template <class F> void walk(const plugrad_view& a, const plugrad_view& b, int64_t* index, F f) {
  std::fill_n(index, a.rank, 0);
  int64_t at_a = 0, at_b = 0;
  for (int64_t n = 0; n < a.count; ++n) {
    if (!f(at_a, at_b)) return;
    for (int axis = a.rank; axis-- > 0;) {
      at_a += a.strides[axis], at_b += b.strides[axis];
      if (++index[axis] < a.shape[axis]) break;
      at_a -= a.strides[axis] * a.shape[axis], at_b -= b.strides[axis] * b.shape[axis];
      index[axis] = 0;
    }
  }
}

double largest(const plugrad_view& view) {
  if (view.layout & PLUGRAD_IMMEDIATE)
    return is_floating(view.dtype) ? std::abs(std::bit_cast<double>(view.offset))
                                   : std::abs(static_cast<double>(static_cast<int64_t>(view.offset)));
  double most = 0;
  int64_t index[PLUGRAD_MAX_RANK];
  walk(view, view, index, [&](int64_t at, int64_t) {
    const double value = std::abs(number_at(view, at));
    if (std::isfinite(value)) most = std::max(most, value);
    return true;
  });
  return most;
}

// The allowed distance of two results: `relative` times the larger result, or `absolute`.
struct Allowance {
  double relative = 0, absolute = 0;
};

// Sums of products may cancel, so their bound follows from the size of the inputs and the number of terms.
Allowance allowance(const OpCall& call, const plugrad_view& expected) {
  if (!is_floating(expected.dtype)) return {};
  const OpInfo& op = *op_info(call.opcode);
  const double epsilon = std::ldexp(1.0, 1 - dtype_info(expected.dtype)->digits);
  const bool half = dtype_size(expected.dtype) == 2;
  if (op.ulps >= 0 && op.shape != OpShape::reduction)
    return {(2.0 * op.ulps + (half ? 1 : 0)) * epsilon, op.ulps ? 1e-37 : 0};
  double product = 1, size = largest(expected), terms = 1;
  for (int i = call.outputs; i < call.operands(); ++i) {
    if (!is_floating(call.views[i]->dtype)) continue;
    const double most = largest(*call.views[i]);
    product *= std::max(most, 1.0);
    terms = std::max(terms, static_cast<double>(call.views[i]->count) / static_cast<double>(expected.count));
  }
  return {64 * epsilon, 64 * epsilon * std::max(size, std::sqrt(terms) * product)};
}

bool agrees(double got, double expected, const Allowance& allowed) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  return std::abs(got - expected) <=
         std::max(allowed.absolute, allowed.relative * std::max(std::abs(got), std::abs(expected)));
}

std::string text_of_index(const int64_t* index, int rank) {
  std::string text = "(";
  for (int axis = 0; axis < rank; ++axis) text += (axis ? ", " : "") + std::to_string(index[axis]);
  return text + ")";
}

}  // namespace

std::string difference(const OpCall& call, int output, const plugrad_view& got) {
  const plugrad_view& expected = *call.views[output];
  const Allowance allowed = allowance(call, expected);
  std::string found;
  int64_t index[PLUGRAD_MAX_RANK];
  walk(got, expected, index, [&](int64_t at_got, int64_t at_expected) {
    const double a = number_at(got, at_got), b = number_at(expected, at_expected);
    const bool same_bits = expected.dtype != PLUGRAD_I64 || at<int64_t>(got, at_got) == at<int64_t>(expected, at_expected);
    if (same_bits && agrees(a, b, allowed)) return true;
    const double bound = std::max(allowed.absolute, allowed.relative * std::abs(b));
    found = "element " + text_of_index(index, got.rank) + " is " + number_text(a) + ", expected " + number_text(b) +
            (bound > 0 ? " (within " + number_text(bound) + ")" : "");
    return false;
  });
  return found;
}

}  // namespace plugrad
