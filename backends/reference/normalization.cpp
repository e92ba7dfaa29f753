#include <backends/reference/kernels.hpp>
#include <plugrad/sdk/loops/accumulator.hpp>
#include <plugrad/sdk/loops/elements.hpp>

#include <cmath>

namespace plugrad::reference {
namespace {

double epsilon_of(const Call& call) { return call.attributes<plugrad_norm>().epsilon; }

// The type of statistics.
template <class T> using Wide = AccumulatorType<T>;

// The mean of f(i) over i below n.
template <class T, class F> double mean_over(int64_t n, F f) {
  Accumulator<T> sum;
  for (int64_t i = 0; i < n; ++i) sum.add(f(i));
  return sum.total() / static_cast<double>(n);
}

// Of elements x(i): their mean, and 1 / sqrt(variance + epsilon).
struct Statistics {
  double mean, variance, scale;
};
template <class T, class X> Statistics statistics(int64_t n, X x, double epsilon) {
  const double mean = mean_over<T>(n, x);
  const double variance = mean_over<T>(n, [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
  return {mean, variance, 1 / std::sqrt(variance + epsilon)};
}
template <class T, class X> Statistics statistics_about_0(int64_t n, X x, double epsilon) {
  const double squares = mean_over<T>(n, [&](int64_t i) { return x(i) * x(i); });
  return {0, squares, 1 / std::sqrt(squares + epsilon)};
}

// The element of a matrix, or of a vector.
template <class T> T& at(const Elements<T>& m, int64_t i, int64_t j) { return m.first[i * m.strides[0] + j * m.strides[1]]; }
template <class T> T& at(const Elements<T>& v, int64_t i) { return v.first[i * v.strides[0]]; }

template <class T, bool centred, class X> Statistics row_statistics(int64_t n, X x, double epsilon) {
  return centred ? statistics<T>(n, x, epsilon) : statistics_about_0<T>(n, x, epsilon);
}

template <class T, bool centred> void row_norm(const Call& call) {
  const Elements<T> y(call.out()), x(call.in(0)), weight(call.in(1)), bias(call.in(centred ? 2 : 1));
  const Elements<Wide<T>> means(call.out(1)), rstds(call.out(centred ? 2 : 1));
  const int64_t n = call.out().shape[1];
  for (int64_t i = 0; i < call.out().shape[0]; ++i) {
    const auto [mean, variance, scale] =
        row_statistics<T, centred>(n, [&](int64_t j) -> double { return at(x, i, j); }, epsilon_of(call));
    if (centred) at(means, i) = static_cast<Wide<T>>(mean);
    at(rstds, i) = static_cast<Wide<T>>(scale);
    for (int64_t j = 0; j < n; ++j)
      at(y, i, j) = static_cast<T>((at(x, i, j) - mean) * scale * at(weight, j) + (centred ? at(bias, j) : T(0)));
  }
}

template <class T, bool centred> void row_norm_backward(const Call& call) {
  const Elements<T> x_grad(call.out(0)), weight_grad(call.out(1)), bias_grad(call.out(centred ? 2 : 1));
  const Elements<T> grad(call.in(0)), x(call.in(1)), weight(call.in(2));
  const Elements<Wide<T>> means(call.in(3)), rstds(call.in(centred ? 4 : 3));
  const int64_t n = call.out().shape[1];
  std::vector<Accumulator<T>> weight_sums(static_cast<size_t>(n)), bias_sums(static_cast<size_t>(n));
  for (int64_t i = 0; i < call.out().shape[0]; ++i) {
    const double mean = centred ? static_cast<double>(at(means, i)) : 0, scale = at(rstds, i);
    const auto normal = [&](int64_t j) { return (at(x, i, j) - mean) * scale; };
    const auto inner = [&](int64_t j) -> double { return static_cast<double>(at(grad, i, j)) * at(weight, j); };
    const double constant = centred ? mean_over<T>(n, inner) : 0;
    const double along = mean_over<T>(n, [&](int64_t j) { return inner(j) * normal(j); });
    for (int64_t j = 0; j < n; ++j) {
      at(x_grad, i, j) = static_cast<T>(scale * (inner(j) - constant - normal(j) * along));
      weight_sums[static_cast<size_t>(j)].add(at(grad, i, j) * normal(j));
      bias_sums[static_cast<size_t>(j)].add(at(grad, i, j));
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    at(weight_grad, j) = static_cast<T>(weight_sums[static_cast<size_t>(j)].total());
    if (centred) at(bias_grad, j) = static_cast<T>(bias_sums[static_cast<size_t>(j)].total());
  }
}

// Element i of a channel of (n, c, s), in the order of n and s.
template <class T> T& in_channel(const Elements<T>& x, const plugrad_view& view, int64_t channel, int64_t i) {
  const int64_t s = view.shape[2];
  return x.first[i / s * x.strides[0] + channel * x.strides[1] + i % s * x.strides[2]];
}

template <class T> void batch_norm(const Call& call) {
  const plugrad_view& view = call.in(0);
  const Elements<T> y(call.out(0));
  const Elements<Wide<T>> means(call.out(1)), variances(call.out(2));
  const Elements<T> x(view), weight(call.in(1)), bias(call.in(2));
  const int64_t n = view.shape[0] * view.shape[2];
  for (int64_t c = 0; c < view.shape[1]; ++c) {
    const auto [mean, variance, scale] =
        statistics<T>(n, [&](int64_t i) -> double { return in_channel(x, view, c, i); }, epsilon_of(call));
    at(means, c) = static_cast<Wide<T>>(mean);
    at(variances, c) = static_cast<Wide<T>>(variance);
    for (int64_t i = 0; i < n; ++i)
      in_channel(y, view, c, i) = static_cast<T>((in_channel(x, view, c, i) - mean) * scale * at(weight, c) + at(bias, c));
  }
}

template <class T> void batch_norm_backward(const Call& call) {
  const plugrad_view& view = call.in(1);
  const Elements<T> x_grad(call.out(0)), weight_grad(call.out(1)), bias_grad(call.out(2));
  const Elements<T> grad(call.in(0)), x(view), weight(call.in(2));
  const Elements<Wide<T>> means(call.in(3)), variances(call.in(4));
  const int64_t n = view.shape[0] * view.shape[2];
  for (int64_t c = 0; c < view.shape[1]; ++c) {
    const double scale = 1 / std::sqrt(at(variances, c) + epsilon_of(call));
    const auto normal = [&](int64_t i) { return (in_channel(x, view, c, i) - static_cast<double>(at(means, c))) * scale; };
    const auto of_grad = [&](int64_t i) -> double { return in_channel(grad, view, c, i); };
    const double constant = mean_over<T>(n, of_grad);
    const double along = mean_over<T>(n, [&](int64_t i) { return of_grad(i) * normal(i); });
    for (int64_t i = 0; i < n; ++i)
      in_channel(x_grad, view, c, i) = static_cast<T>(scale * at(weight, c) * (of_grad(i) - constant - normal(i) * along));
    at(weight_grad, c) = static_cast<T>(along * static_cast<double>(n));
    at(bias_grad, c) = static_cast<T>(constant * static_cast<double>(n));
  }
}

template <class... T> constexpr auto normalization_rows(Types<T...>) {
  constexpr uint16_t kMemory = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE;
  return join(std::array{kernel<row_norm<T, true>>(PLUGRAD_OP_LAYER_NORM, element_dtype<T>, kMemory)...},
              std::array{kernel<row_norm<T, false>>(PLUGRAD_OP_RMS_NORM, element_dtype<T>, kMemory)...},
              std::array{kernel<row_norm_backward<T, true>>(PLUGRAD_OP_LAYER_NORM_BACKWARD, element_dtype<T>, kMemory)...},
              std::array{kernel<row_norm_backward<T, false>>(PLUGRAD_OP_RMS_NORM_BACKWARD, element_dtype<T>, kMemory)...},
              std::array{kernel<batch_norm<T>>(PLUGRAD_OP_BATCH_NORM, element_dtype<T>, kMemory)...},
              std::array{kernel<batch_norm_backward<T>>(PLUGRAD_OP_BATCH_NORM_BACKWARD, element_dtype<T>, kMemory)...});
}
constexpr auto kNormalizationRows = normalization_rows(kFloating);

}  // namespace

Rows normalization_kernels() { return kNormalizationRows; }

}  // namespace plugrad::reference
