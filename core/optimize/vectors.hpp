// Vectors of f64 on the host.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace plugrad::optimize {

using Vector = std::vector<double>;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double inner(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
// The largest magnitude; NaN if an element is NaN.
inline double largest(const Vector& a) {
  double most = 0;
  for (const double each : a) most = std::abs(each) <= most ? most : std::abs(each);
  return most;
}
// The Euclidean norm, also where squares of elements overflow or vanish.
inline double norm(const Vector& a) {
  const double square = inner(a, a), most = largest(a);
  if ((square > 1e-280 && square < 1e280) || most == 0 || !std::isfinite(most)) return std::sqrt(square);
  double sum = 0;
  for (const double each : a) sum += (each / most) * (each / most);
  return most * std::sqrt(sum);
}
inline void add_scaled(Vector& a, double factor, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}
inline Vector scaled(Vector a, double factor) {
  for (double& each : a) each *= factor;
  return a;
}
inline Vector plus(Vector a, double factor, const Vector& b) {
  add_scaled(a, factor, b);
  return a;
}
inline Vector times(Vector a, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}
// The positive length at which start + length direction leaves the ball of this radius, in which start lies.
inline double length_to_sphere(const Vector& start, const Vector& direction, double radius) {
  const double a = inner(direction, direction), b = inner(start, direction), c = inner(start, start) - radius * radius;
  const double root = std::sqrt(b * b > a * c ? b * b - a * c : 0);
  return b <= 0 ? (root - b) / a : -c / (b + root);
}
inline bool all_finite(const Vector& a) {
  for (const double each : a)
    if (!std::isfinite(each)) return false;
  return true;
}

// A dense matrix, row-major.
struct Matrix {
  Matrix(size_t of_rows, size_t of_columns) : rows(of_rows), columns(of_columns), elements(of_rows * of_columns) {}
  Matrix(size_t of_rows, size_t of_columns, Vector values)
      : rows(of_rows), columns(of_columns), elements(std::move(values)) {}
  double& operator()(size_t i, size_t j) { return elements[i * columns + j]; }
  double operator()(size_t i, size_t j) const { return elements[i * columns + j]; }
  size_t rows, columns;
  Vector elements;
};
inline Vector column(const Matrix& a, size_t j) {
  Vector made(a.rows);
  for (size_t i = 0; i < a.rows; ++i) made[i] = a(i, j);
  return made;
}
inline Vector product(const Matrix& a, const Vector& x) {
  Vector y(a.rows);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j) y[i] += a(i, j) * x[j];
  return y;
}
// a transposed times x.
inline Vector transposed_product(const Matrix& a, const Vector& x) {
  Vector y(a.columns);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j) y[j] += a(i, j) * x[i];
  return y;
}

}  // namespace plugrad::optimize
