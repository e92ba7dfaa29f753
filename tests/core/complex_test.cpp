// Complex numbers: values beside std::complex, layouts of parts, dtypes, and functions without a meaning for them.
#include <tests/core/expect.hpp>

#include <cmath>
#include <complex>
#include <limits>

namespace plugrad::test {
namespace {
using C = std::complex<double>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

Tensor numbers(const std::vector<C>& values, const Shape& shape) { return Tensor::from<C>(values, shape); }
std::vector<C> grid() {
  std::vector<C> all;
  for (const double re : {-3.0, -1.0, -0.4, 0.0, 0.3, 1.0, 2.5})
    for (const double im : {-2.5, -1.0, -0.2, 0.0, 0.1, 1.0, 3.0}) all.emplace_back(re, im);
  return all;
}

// The largest error beside the size of the expected number.
double error_of(const Tensor& x, const std::vector<C>& expected) {
  const std::vector<C> found = x.to_vector<C>();
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(std::abs(expected[i]))) continue;
    worst = std::max(worst, std::abs(found[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  }
  return worst;
}

TEST(Complex, FunctionsAreThoseOfTheStandardLibrary) {
  const std::vector<C> z = grid();
  const Tensor x = numbers(z, {static_cast<int64_t>(z.size())});
  const auto check = [&](const char* name, const Tensor& found, C (*expected)(const C&)) {
    std::vector<C> wanted;
    for (const C& each : z) wanted.push_back(expected(each));
    EXPECT_LT(error_of(found, wanted), 1e-14) << name;
  };
  check("sqrt", sqrt(x), [](const C& v) { return std::sqrt(v); });
  check("exp", exp(x), [](const C& v) { return std::exp(v); });
  check("log", log(x), [](const C& v) { return std::log(v); });
  check("sin", sin(x), [](const C& v) { return std::sin(v); });
  check("cos", cos(x), [](const C& v) { return std::cos(v); });
  check("tan", tan(x), [](const C& v) { return std::tan(v); });
  check("sinh", sinh(x), [](const C& v) { return std::sinh(v); });
  check("cosh", cosh(x), [](const C& v) { return std::cosh(v); });
  check("tanh", tanh(x), [](const C& v) { return std::tanh(v); });
  check("asin", asin(x), [](const C& v) { return std::asin(v); });
  check("acos", acos(x), [](const C& v) { return std::acos(v); });
  check("atan", atan(x), [](const C& v) { return std::atan(v); });
  check("asinh", asinh(x), [](const C& v) { return std::asinh(v); });
  check("acosh", acosh(x), [](const C& v) { return std::acosh(v); });
  check("atanh", atanh(x), [](const C& v) { return std::atanh(v); });
  check("pow", pow(x, 2.5), [](const C& v) { return std::pow(v, 2.5); });
  check("square", pow(x, 2), [](const C& v) { return v * v; });
}

TEST(Complex, ArithmeticIsThatOfTheStandardLibrary) {
  const std::vector<C> z = grid();
  const auto n = static_cast<int64_t>(z.size());
  const Tensor x = numbers(z, {n, 1}), y = numbers(z, {n});
  std::vector<C> sums, products, quotients;
  for (const C& a : z)
    for (const C& b : z) {
      sums.push_back(a + b);
      products.push_back(a * b);
      quotients.push_back(b == 0.0 ? C(kInfinite) : a / b);
    }
  EXPECT_EQ(error_of(x + y, sums), 0);
  EXPECT_LT(error_of(x * y, products), 1e-15);
  EXPECT_LT(error_of(x / y, quotients), 1e-15);
  // No square of a divisor overflows.
  EXPECT_LT(error_of(numbers({C(1e300, 1e300)}, {1}) / numbers({C(1e300, -1e300)}, {1}), {C(0, 1)}), 1e-15);
  EXPECT_LT(error_of(sqrt(numbers({C(1e300, 1e300)}, {1})) * 1e-150, {std::sqrt(C(1, 1))}), 1e-14);
  EXPECT_DOUBLE_EQ(abs(numbers({C(3e200, 4e200)}, {1})).item<double>(), 5e200);
}

TEST(Complex, BranchCutsFollowTheSignOfZero) {
  const Tensor x = numbers({C(-4, 0.0), C(-4, -0.0)}, {2});
  EXPECT_LT(error_of(sqrt(x), {C(0, 2), C(0, -2)}), 1e-15);
  EXPECT_LT(error_of(log(x), {std::log(C(-4, 0.0)), std::log(C(-4, -0.0))}), 1e-15);
  EXPECT_LT(error_of(acosh(x), {std::acosh(C(-4, 0.0)), std::acosh(C(-4, -0.0))}), 1e-14);
}

TEST(Complex, PartsAreViews) {
  const Tensor x = numbers({C(1, 2), C(3, 4), C(5, 6)}, {3});
  EXPECT_TRUE(close(real(x), {3}, {1, 3, 5}));
  EXPECT_TRUE(close(imag(flip(x, {0})), {3}, {6, 4, 2}));
  EXPECT_TRUE(close(view_as_real(x), {3, 2}, {1, 2, 3, 4, 5, 6}));
  imag(x).fill_(0);
  EXPECT_EQ(x.to_vector<C>(), (std::vector<C>{1, 3, 5}));
  const Tensor pairs = f64({1, 2, 3, 4}, {2, 2});
  view_as_complex(pairs).fill_(7);
  EXPECT_TRUE(close(pairs, {2, 2}, {7, 0, 7, 0}));
  EXPECT_EQ(view_as_complex(transpose(f64({1, 2, 3, 4}, {2, 2}))).to_vector<C>(), (std::vector<C>{C(1, 3), C(2, 4)}));
  EXPECT_EQ(conj(x).dtype(), DType::c128);
  EXPECT_TRUE(real(pairs).is_same(pairs));
}

TEST(Complex, DTypesPromote) {
  EXPECT_EQ(promote_types(DType::c64, DType::f32), DType::c64);
  EXPECT_EQ(promote_types(DType::f64, DType::c64), DType::c128);
  EXPECT_EQ(promote_types(DType::i64, DType::c64), DType::c64);
  EXPECT_EQ(promote_types(DType::boolean, DType::c128), DType::c128);
  const Tensor x = numbers({C(0, 2), C(3, 0), C(0, 0)}, {3});
  EXPECT_TRUE(close(cast(x, DType::boolean), {3}, {1, 1, 0}));
  EXPECT_TRUE(close(cast(x, DType::i64), {3}, {0, 3, 0}));
  EXPECT_EQ((x + of(DType::f32, {1, 1, 1}, {3})).to_vector<C>(), (std::vector<C>{C(1, 2), C(4, 0), C(1, 0)}));
  EXPECT_EQ(sum(x).item<C>(), C(3, 2));
  EXPECT_EQ(abs(cast(x, DType::c64)).dtype(), DType::f32);
}

TEST(Complex, FunctionsThatNeedAnOrderAreRefused) {
  const Tensor x = numbers({C(1, 2), C(3, 4)}, {2}), y = numbers({C(2, 1), C(1, 1)}, {2});
  const auto refuses = [](const char* name, const auto& call) {
    try {
      call();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("complex"), std::string::npos) << error.what();
    }
  };
  refuses("lt", [&] { lt(x, y); });
  refuses("max", [&] { max(x); });
  refuses("argsort", [&] { argsort(x); });
  refuses("floor", [&] { floor(x); });
  refuses("relu", [&] { relu(x); });
  refuses("fmod", [&] { fmod(x, y); });
  refuses("erf", [&] { erf(x); });
  refuses("atan2", [&] { atan2(x, y); });
  refuses("isposinf", [&] { isposinf(x); });
  refuses("item", [&] { y.detach(), sum(x).item<double>(); });
}
}  // namespace
}  // namespace plugrad::test
