#include <sdk/conformance/op_rows.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

namespace plugrad::conformance {
namespace {

using Complex = std::complex<long double>;

struct FourierShape {
  Shape shape;  // of the real numbers, or of the complex numbers where there are only those
  int32_t axis;
};

// Lengths of every kind: powers of two, small and large prime factors, even and odd, lines side by side and one after
// another.
const std::vector<FourierShape>& fourier_shapes() {
  static const std::vector<FourierShape> list = {
      {{1}, 0},    {{2}, 0},       {{3}, 0},      {{5, 7}, 0},   {{5, 7}, 1},  {{3, 8, 5}, 1}, {{2, 3, 16}, 2},
      {{64}, 0},   {{100}, 0},     {{31, 2}, 0},  {{37}, 0},     {{2, 74}, 1}, {{3, 111}, 1},  {{74, 3}, 0},
      {{243}, 0},  {{1, 154}, 1},  {{17, 60}, 1}, {{40, 33}, 0}, {{512}, 0},   {{2, 1024}, 1}, {{405}, 0},
      {{1009}, 0}, {{1024, 2}, 0}, {{2048}, 0},   {{2187}, 0},   {{2310}, 0},  {{4096}, 0},    {{2, 1, 2, 3, 1, 2}, 3},
      {{9, 1}, 1}, {{1, 9}, 0},    {{20, 6}, 1},  {{20, 9}, 1}};
  return list;
}

// The lines of an array of real numbers or of pairs along the last axis.
class Lines {
 public:
  Lines(const Array& array, int32_t axis, bool pairs)
      : array_(array), strides_(row_major(array.shape())), stride_(strides_[axis]), extent_(array.shape()[axis]),
        pairs_(pairs) {}
  int64_t extent() const { return extent_; }
  // outer: the place of the line, 0 along the axis.
  int64_t place(const Shape& outer, int64_t j) const {
    int64_t at = j * stride_;
    for (size_t d = 0; d < outer.size(); ++d) at += outer[d] * strides_[d];
    return at;
  }
  Complex get(const Shape& outer, int64_t j) const {
    const int64_t at = place(outer, j);
    return pairs_ ? Complex(array_.get(at), array_.get(at + 1)) : Complex(array_.get(at));
  }

 private:
  const Array& array_;
  Shape strides_;
  int64_t stride_, extent_;
  bool pairs_;
};

// The line as n complex numbers, and the sum of their parts' magnitudes.
std::vector<Complex> whole_line(const Lines& x, const Shape& outer, uint32_t kind, int64_t n, long double& magnitude) {
  std::vector<Complex> line(static_cast<size_t>(n));
  for (int64_t j = 0; j < x.extent(); ++j) line[j] = x.get(outer, j);
  if (kind == PLUGRAD_FFT_INVERSE_REAL) {
    line[0] = line[0].real();
    for (int64_t j = 1; j < x.extent(); ++j) {
      if (2 * j == n) line[j] = line[j].real();
      else line[n - j] = std::conj(line[j]);
    }
  }
  magnitude = 0;
  for (const Complex& each : line) magnitude += std::fabs(each.real()) + std::fabs(each.imag());
  return line;
}

std::vector<Complex> roots_of(uint32_t kind, int64_t n) {
  const long double sign = kind == PLUGRAD_FFT_BACKWARD || kind == PLUGRAD_FFT_INVERSE_REAL ? 1 : -1;
  std::vector<Complex> roots(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) roots[j] = std::polar(1.0L, sign * 2 * std::numbers::pi_v<long double> * j / n);
  return roots;
}

}  // namespace

std::vector<Problem> fft_problems(const Question& question, Random& random) {
  std::vector<Problem> list;
  for (const FourierShape& each : fourier_shapes()) {
    for (const uint32_t kind : {PLUGRAD_FFT_FORWARD, PLUGRAD_FFT_BACKWARD, PLUGRAD_FFT_REAL, PLUGRAD_FFT_INVERSE_REAL}) {
      Shape whole = each.shape, pairs = each.shape;
      if (kind == PLUGRAD_FFT_REAL || kind == PLUGRAD_FFT_INVERSE_REAL) pairs[each.axis] = pairs[each.axis] / 2 + 1;
      else whole.push_back(2);
      pairs.push_back(2);
      Problem problem;
      problem.large = count_of(each.shape) > 1000;
      problem.outputs.emplace_back(question.out(), kind == PLUGRAD_FFT_INVERSE_REAL ? whole : pairs);
      const Shape& in = kind == PLUGRAD_FFT_REAL ? whole : pairs;
      const bool special = list.size() % 7 == 3 && !problem.large;
      problem.inputs.push_back(special ? sprinkled_array(question.in(0), in, {-10, 10}, 40, random)
                                       : random_array(question.in(0), in, {-10, 10}, random));
      const double scale = list.size() % 3 == 0 ? 1 : 1.0 / static_cast<double>(each.shape[each.axis]);
      problem.set_attributes(plugrad_fft{sizeof(plugrad_fft), each.axis, kind, 0, scale});
      list.push_back(std::move(problem));
    }
  }
  return list;
}

// By the definition, in long double.
void fft_reference(const Question& question, const Problem& problem, Expectations& expected) {
  const Array& x = problem.inputs[0];
  const auto how = problem.attributes_as<plugrad_fft>();
  const bool real_in = how.kind == PLUGRAD_FFT_REAL, real_out = how.kind == PLUGRAD_FFT_INVERSE_REAL;
  const Lines in(x, how.axis, !real_in), out(problem.outputs[0], how.axis, !real_out);
  const int64_t n = real_in ? in.extent() : out.extent();
  const std::vector<Complex> roots = roots_of(how.kind, n);
  const long double epsilon = limits_of(question.out()).epsilon, scale = how.scale;
  Shape outer(x.shape().begin(), x.shape().end() - (real_in ? 0 : 1));
  outer[how.axis] = 1;
  Walk walk(outer);
  for (int64_t i = 0, lines = count_of(outer); i < lines; ++i, walk.next()) {
    long double magnitude;
    const std::vector<Complex> line = whole_line(in, walk.index(), how.kind, n, magnitude);
    const bool unspecified = !(4 * n * magnitude <= limits_of(question.out()).largest);
    const long double bound = epsilon * (16 + 4 * std::log2(static_cast<long double>(n))) * magnitude * scale;
    for (int64_t k = 0; k < out.extent(); ++k) {
      Complex sum = 0;
      for (int64_t j = 0; j < n && !unspecified; ++j) sum += line[j] * roots[j * k % n];
      Expected* const at = &expected[0].elements[out.place(walk.index(), k)];
      at[0] = {.value = sum.real() * scale, .bound = bound, .any_zero_sign = true, .unspecified = unspecified};
      if (!real_out)
        at[1] = {.value = sum.imag() * scale, .bound = bound, .any_zero_sign = true, .unspecified = unspecified};
    }
  }
}

}  // namespace plugrad::conformance
