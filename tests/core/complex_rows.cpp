// Gradients of functions of complex numbers, as gradients of their parts.
#include <tests/core/gradient_rows.hpp>

#include <plugrad/ops/linalg.hpp>

namespace plugrad::test {
namespace {
constexpr double kLow = 0.5, kHigh = 2;
using Rows = std::vector<GradientRow>;
using I = const Inputs&;

// A real tensor in which both parts of x count differently.
Tensor weighed(const Tensor& x) { return real(x) + imag(x) * imag(x) * 0.5; }
Tensor number(I x) { return complex(x[0], x[1]); }
Tensor other(I x) { return complex(x[1], x[0] * 0.5); }

const std::vector<Shape> kTwo{{2, 3}, {2, 3}};

Rows part_rows() {
  return {
      {"real", "Plain", kTwo, kLow, kHigh, [](I x) { return exp(real(number(x) * number(x))); }},
      {"imag", "Plain", kTwo, kLow, kHigh, [](I x) { return exp(imag(number(x) * number(x)) * 0.2); }},
      {"conj", "Plain", kTwo, kLow, kHigh, [](I x) { return weighed(conj(number(x)) * other(x)); }},
      {"adjoint", "Plain", kTwo, kLow, kHigh, [](I x) { return weighed(matmul(adjoint(number(x)), other(x))); }},
      {"complex", "Broadcast", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return weighed(number(x) * number(x)); }},
      {"polar", "Plain", {{2, 3}, {3}}, kLow, kHigh, [](I x) { return weighed(polar(x[0], x[1])); }},
      {"view_as_real", "Plain", kTwo, kLow, kHigh, [](I x) { return exp(view_as_real(number(x) * other(x)) * 0.2); }},
      {"view_as_complex", "Plain", {{3, 2}}, kLow, kHigh,
       [](I x) { return weighed(view_as_complex(x[0]) * view_as_complex(x[0])); }},
      {"abs", "Complex", kTwo, kLow, kHigh, [](I x) { return exp(abs(number(x))); }},
      {"angle", "Complex", kTwo, kLow, kHigh, [](I x) { return exp(angle(number(x))); }},
      {"sign", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(sign(number(x)) * other(x)); }},
      {"real", "OfCast", kTwo, kLow, kHigh, [](I x) { return cast(number(x) * number(x), DType::f64); }},
      {"complex", "OfCast", {{2, 3}}, kLow, kHigh, [](I x) { return weighed(exp(cast(x[0], DType::c128))); }},
  };
}

Rows function_rows() {
  return {
      {"mul", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(number(x) * other(x) * number(x)); }},
      {"div", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(number(x) / other(x)); }},
      {"div", "NumberByComplex", kTwo, kLow, kHigh, [](I x) { return weighed(2 / number(x)); }},
      {"pow", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(pow(number(x), other(x))); }},
      {"pow", "ComplexToNumber", kTwo, kLow, kHigh, [](I x) { return weighed(pow(number(x), 3)); }},
      {"pow", "NumberToComplex", kTwo, kLow, kHigh, [](I x) { return weighed(pow(2, number(x))); }},
      {"sqrt", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(sqrt(number(x))); }},
      {"exp", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(exp(number(x))); }},
      {"expm1", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(expm1(number(x))); }},
      {"log", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(log(number(x))); }},
      {"log1p", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(log1p(number(x))); }},
      {"sigmoid", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(sigmoid(number(x))); }},
      {"sin", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(sin(number(x))); }},
      {"cos", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(cos(number(x))); }},
      {"tan", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(tan(number(x))); }},
      {"asin", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(asin(number(x))); }},
      {"acos", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(acos(number(x))); }},
      {"atan", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(atan(number(x))); }},
      {"sinh", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(sinh(number(x))); }},
      {"cosh", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(cosh(number(x))); }},
      {"tanh", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(tanh(number(x))); }},
      {"asinh", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(asinh(number(x))); }},
      {"acosh", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(acosh(number(x))); }},
      {"atanh", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(atanh(number(x))); }},
  };
}

Rows sum_rows() {
  return {
      {"sum", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(exp(sum(number(x) * other(x), {0}) * 0.2)); }},
      {"prod", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(prod(number(x), {1})); }},
      {"cumsum", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(exp(cumsum(number(x), 1) * 0.2)); }},
      {"var", "Complex", kTwo, kLow, kHigh, [](I x) { return var(number(x) * other(x), {1}); }},
      {"norm", "Complex", kTwo, kLow, kHigh, [](I x) { return norm(number(x) * other(x), 3, {1}); }},
      {"matmul", "Complex", {{2, 3}, {2, 3}}, kLow, kHigh,
       [](I x) { return weighed(matmul(number(x), transpose(other(x)))); }},
      {"vdot", "Complex", {{3}, {3}}, kLow, kHigh, [](I x) { return weighed(vdot(number(x), other(x))); }},
      {"conv1d", "Complex", {{1, 2, 5}, {1, 2, 5}}, kLow, kHigh,
       [](I x) { return weighed(conv1d(number(x), slice(other(x), 2, 0, 3))); }},
      {"where", "Complex", kTwo, kLow, kHigh,
       [](I x) {
         const Tensor condition = Tensor::from<bool>({true, false, true}, {3}, x[0].device());
         return weighed(exp(where(condition, number(x), other(x))));
       }},
      {"gather", "Complex", kTwo, kLow, kHigh,
       [](I x) { return weighed(exp(gather(number(x), 1, Tensor::from<int64_t>({2, 0, 0, 1}, {2, 2}, x[0].device())))); }},
      {"cat", "Complex", kTwo, kLow, kHigh, [](I x) { return weighed(exp(cat({number(x), other(x)}, 0))); }},
  };
}

// Hermitian with positive eigenvalues, of the matrices of x.
Tensor definite(I x) {
  const Tensor a = number(x);
  return matmul(a, adjoint(a)) + cast(eye(3, 3, DType::f64, a.device()), DType::c128) * 4;
}
Tensor matrix(I x) { return number(x) + cast(eye(3, 3, DType::f64, x[0].device()), DType::c128) * 3; }
const std::vector<Shape> kSquares{{3, 3}, {3, 3}};

Rows equation_rows() {
  return {
      {"solve", "Complex", kSquares, kLow, kHigh, [](I x) { return weighed(linalg::solve(matrix(x), other(x))); }},
      {"solve", "FromTheRight", kSquares, kLow, kHigh,
       [](I x) { return weighed(linalg::solve(matrix(x), other(x), false)); }},
      {"inv", "Complex", kSquares, kLow, kHigh, [](I x) { return weighed(linalg::inv(matrix(x))); }},
      {"det", "Complex", kSquares, kLow, kHigh, [](I x) { return weighed(linalg::det(matrix(x)) * 0.1); }},
      {"slogdet", "Complex", kSquares, kLow, kHigh,
       [](I x) {
         const auto made = linalg::slogdet(matrix(x));
         return weighed(made.sign) * made.logabsdet;
       }},
      {"solve_triangular", "Complex", kSquares, kLow, kHigh,
       [](I x) { return weighed(linalg::solve_triangular(matrix(x), other(x), true)); }},
      {"lu_factor", "Complex", kSquares, kLow, kHigh, [](I x) { return weighed(linalg::lu_factor(matrix(x)).lu); }},
      {"cholesky", "Complex", kSquares, kLow, kHigh, [](I x) { return weighed(linalg::cholesky(definite(x))); }},
      {"cholesky", "ComplexUpper", kSquares, kLow, kHigh,
       [](I x) { return weighed(linalg::cholesky(definite(x), true)); }},
      {"cholesky_solve", "Complex", kSquares, kLow, kHigh,
       [](I x) { return weighed(linalg::cholesky_solve(other(x), linalg::cholesky(definite(x)))); }},
  };
}

Rows transform_rows() {
  return {
      {"fft", "Plain", kTwo, kLow, kHigh, [](I x) { return weighed(fft::fft(number(x)) * number(x)); }},
      {"fft", "AcrossAndPadded", kTwo, kLow, kHigh, 
       [](I x) { return weighed(fft::fft(number(x), 3, 0, fft::Norm::ortho)); }},
      {"ifft", "Cut", kTwo, kLow, kHigh, [](I x) { return weighed(exp(fft::ifft(number(x), 2))); }},
      {"rfft", "Even", {{2, 4}}, kLow, kHigh, [](I x) { return weighed(fft::rfft(x[0])); }},
      {"rfft", "Odd", {{3, 2}}, kLow, kHigh, [](I x) { return weighed(fft::rfft(x[0], {}, 0, fft::Norm::forward)); }},
      {"irfft", "Even", kTwo, kLow, kHigh, [](I x) { return exp(fft::irfft(number(x)) * 0.2); }},
      {"irfft", "Odd", kTwo, kLow, kHigh, [](I x) { return exp(fft::irfft(number(x), 5) * 0.2); }},
      {"hfft", "Plain", kTwo, kLow, kHigh, [](I x) { return exp(fft::hfft(number(x)) * 0.02); }},
      {"ihfft", "Plain", {{2, 5}}, kLow, kHigh, [](I x) { return weighed(fft::ihfft(x[0])); }},
      {"fftn", "Plain", kTwo, kLow, kHigh, [](I x) { return weighed(fft::fftn(number(x))); }},
      {"ifftn", "Sizes", kTwo, kLow, kHigh, [](I x) { return weighed(fft::ifftn(number(x), {3, 2})); }},
      {"rfftn", "Plain", {{3, 4}}, kLow, kHigh, [](I x) { return weighed(fft::rfftn(x[0])); }},
      {"irfftn", "Plain", kTwo, kLow, kHigh, [](I x) { return exp(fft::irfftn(number(x)) * 0.2); }},
      {"hfftn", "Plain", kTwo, kLow, kHigh, [](I x) { return exp(fft::hfftn(number(x)) * 0.02); }},
      {"ihfftn", "Plain", {{3, 4}}, kLow, kHigh, [](I x) { return weighed(fft::ihfftn(x[0])); }},
      {"fftshift", "Plain", kTwo, kLow, kHigh, [](I x) { return weighed(fft::fftshift(number(x)) * number(x)); }},
      {"ifftshift", "Plain", kTwo, kLow, kHigh, [](I x) { return weighed(fft::ifftshift(number(x)) * number(x)); }},
  };
}
}  // namespace

std::vector<GradientRow> complex_rows() {
  std::vector<GradientRow> all = equation_rows();
  for (GradientRow& row : all) row.falls_back = true;
  for (const auto& rows : {part_rows(), function_rows(), sum_rows(), transform_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace plugrad::test
