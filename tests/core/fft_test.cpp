// Fourier transforms: values beside the definition for lengths of every kind, lengths and axes, and errors. On devices
// without the op FFT, they are composed.
#include <tests/core/expect.hpp>

#include <plugrad/ops/fft.hpp>

#include <cmath>
#include <complex>
#include <numbers>

namespace plugrad::test {
namespace {
using C = std::complex<double>;

// Numbers without a pattern.
std::vector<C> some(int64_t count) {
  std::vector<C> all;
  for (int64_t i = 0; i < count; ++i) all.emplace_back(std::sin(3.7 * i * i + 1), std::cos(1.3 * i * i + 2));
  return all;
}
std::vector<double> reals(const std::vector<C>& numbers) {
  std::vector<double> all;
  for (const C& each : numbers) all.push_back(each.real());
  return all;
}

// The definition, of the middle one of three axes (outer, n, inner).
std::vector<C> transformed(const std::vector<C>& x, int64_t outer, int64_t n, int64_t inner, int sign) {
  std::vector<C> roots;
  for (int64_t k = 0; k < n; ++k)
    roots.push_back(std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
  std::vector<C> all(x.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < inner; ++i)
        for (int64_t j = 0; j < n; ++j) all[(o * n + k) * inner + i] += x[(o * n + j) * inner + i] * roots[j * k % n];
  return all;
}
// The first n / 2 + 1 elements along the middle axis.
std::vector<C> half(const std::vector<C>& whole, int64_t outer, int64_t n, int64_t inner) {
  std::vector<C> all;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t j = 0; j < (n / 2 + 1) * inner; ++j) all.push_back(whole[o * n * inner + j]);
  return all;
}

template <class T> double error_of(const Tensor& x, const std::vector<C>& expected) {
  const std::vector<T> found = x.to_vector<T>();
  EXPECT_EQ(found.size(), expected.size());
  double worst = 0, size = 1;
  for (size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(C(found[i]) - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  return worst / size;
}

// All four kinds, with n numbers along the middle axis.
void expect_transforms(int64_t outer, int64_t n, int64_t inner) {
  SCOPED_TRACE(testing::Message() << outer << " x " << n << " x " << inner);
  const std::vector<C> x = some(outer * n * inner);
  const Tensor whole = Tensor::from<C>(x, {outer, n, inner}), real = Tensor::from(reals(x), {outer, n, inner});
  const std::vector<C> forward = transformed(x, outer, n, inner, -1);
  EXPECT_LT(error_of<C>(fft::fft(whole, {}, 1), forward), 1e-13);
  EXPECT_LT(error_of<C>(fft::ifft(whole, {}, 1, fft::Norm::forward), transformed(x, outer, n, inner, 1)), 1e-13);
  EXPECT_LT(error_of<C>(fft::ifft(Tensor::from<C>(forward, {outer, n, inner}), {}, 1), x), 1e-13);
  const std::vector<double> parts = reals(x);
  const std::vector<C> of_real(parts.begin(), parts.end());
  const Tensor spectrum = fft::rfft(real, {}, 1);
  EXPECT_LT(error_of<C>(spectrum, half(transformed(of_real, outer, n, inner, -1), outer, n, inner)), 1e-13);
  EXPECT_LT(error_of<double>(fft::irfft(spectrum, n, 1), of_real), 1e-13);
  const Tensor narrow = cast(whole, DType::c64);
  const std::vector<std::complex<float>> rounded = fft::fft(narrow, {}, 1).to_vector<std::complex<float>>();
  double worst = 0;
  for (size_t i = 0; i < rounded.size(); ++i) worst = std::max(worst, std::abs(C(rounded[i]) - forward[i]));
  EXPECT_LT(worst, 4e-6 * std::sqrt(static_cast<double>(n)));
}

TEST(Fft, LinesOfEveryLengthAreTransformed) {
  for (int64_t n = 1; n <= 40; ++n) expect_transforms(2, n, 1);
  for (const int64_t n : {64, 74, 81, 97, 100, 111, 128, 154, 243, 256, 289, 331, 400, 512, 662, 1024})
    expect_transforms(1, n, 1);
}

TEST(Fft, LinesSideBySideAreTransformed) {
  for (const int64_t n : {1, 2, 3, 5, 8, 9, 16, 30, 37, 60, 74}) {
    expect_transforms(2, n, 3);
    expect_transforms(1, n, 37);
    expect_transforms(37, n, 1);
  }
}

TEST(Fft, WhatTheHalfOfARealTransformIgnoresIsIgnored) {
  const std::vector<C> x{{1, 5}, {2, 3}, {4, 7}};
  const std::vector<C> as_read{{1, 0}, {2, 3}, {4, 0}, {2, -3}};
  const Tensor half = Tensor::from<C>(x, {3});
  EXPECT_LT(error_of<double>(fft::irfft(half, {}, 0, fft::Norm::forward), transformed(as_read, 1, 4, 1, 1)), 1e-14);
  EXPECT_LT(error_of<double>(fft::hfft(half), transformed(as_read, 1, 4, 1, -1)), 1e-14);
}

TEST(Fft, SeveralAxesAreTransformedOneAfterAnother) {
  const Tensor x = Tensor::from<C>(some(60), {3, 4, 5});
  const std::vector<C> expected = fft::fft(fft::fft(fft::fft(x, {}, 2), 6, 1), 2, 0).to_vector<C>();
  EXPECT_LT(error_of<C>(fft::fftn(x, {2, 6, 5}), expected), 1e-14);
  EXPECT_LT(error_of<C>(fft::ifftn(fft::fftn(x)), x.to_vector<C>()), 1e-14);
  EXPECT_LT(error_of<C>(fft::fftn(transpose(x, 0, 2), {}, {1}), transpose(fft::fft(x, {}, 1), 0, 2).to_vector<C>()), 1e-14);
  const Tensor y = Tensor::from(reals(some(60)), {3, 4, 5});
  EXPECT_EQ(fft::rfftn(y).shape(), (Shape{3, 4, 3}));
  const std::vector<C> of_y = some(60);
  const std::vector<double> parts = reals(of_y);
  EXPECT_LT(error_of<double>(fft::irfftn(fft::rfftn(y), {3, 4, 5}), {parts.begin(), parts.end()}), 1e-14);
  EXPECT_LT(error_of<double>(fft::hfftn(fft::ihfftn(y), {3, 4, 5}), {parts.begin(), parts.end()}), 1e-14);
}

TEST(Fft, FrequenciesAndShiftsAreThoseOfNumPy) {
  EXPECT_EQ(fft::fftfreq(5, 0.5).to_vector<float>(), (std::vector<float>{0, 0.4f, 0.8f, -0.8f, -0.4f}));
  EXPECT_EQ(fft::fftfreq(4, 1, DType::f64).to_vector<double>(), (std::vector<double>{0, 0.25, -0.5, -0.25}));
  EXPECT_EQ(fft::rfftfreq(5, 0.2, DType::f64).to_vector<double>(), (std::vector<double>{0, 1, 2}));
  const Tensor x = arange(0, 5, 1, DType::i64);
  EXPECT_EQ(fft::fftshift(x).to_vector<int64_t>(), (std::vector<int64_t>{3, 4, 0, 1, 2}));
  EXPECT_EQ(fft::ifftshift(x).to_vector<int64_t>(), (std::vector<int64_t>{2, 3, 4, 0, 1}));
}

TEST(Fft, UnfitArgumentsAreNamed) {
  const Tensor x = Tensor::from<C>(some(6), {2, 3});
  EXPECT_TRUE(throws(Code::invalid, {"[fft.fft] the length is 0: expected 1 or more"}, [&] { fft::fft(x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fft.irfft] the length is 0"}, [&] { fft::irfft(slice(x, 1, 0, 1)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fft.ifft]"}, [&] { fft::ifft(x, {}, 2); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fft.rfft] x is c128, expected real numbers"}, [&] { fft::rfft(x); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"[fft.fftn] there are sizes (2,) for the axes (0, 1)"}, [&] { fft::fftn(x, {2}, {0, 1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fft.fftn] axis 1 appears twice"}, [&] { fft::fftn(x, {}, {1, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[fft.fftfreq] the length is 0"}, [] { fft::fftfreq(0); }));
  EXPECT_EQ(fft::fft(zeros({0, 4}, DType::c64)).shape(), (Shape{0, 4}));
}

}  // namespace
}  // namespace plugrad::test
