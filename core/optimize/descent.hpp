// What the methods of minimize() share: evaluations, and the course of a search.
#pragma once
#include <core/optimize/places.hpp>
#include <core/optimize/vectors.hpp>
#include <plugrad/optimize/minimize.hpp>

#include <cstdint>
#include <string>

namespace plugrad::optimize {

// A point with its value and gradient.
struct Point {
  Vector x;
  double value = 0;
  Vector gradient;
};

// The function and its derivatives at vectors; counts evaluations.
class Evaluations {
 public:
  // The objective must outlive this.
  Evaluations(const Objective& objective, const Tensor& x0) : objective_(objective), places_(x0, "minimize") {}
  Point at(Vector x);
  Matrix hessian(const Vector& x);
  Vector hessian_product(const Vector& x, const Vector& v);
  const Places& places() const { return places_; }
  int64_t values = 0, hessians = 0;

 private:
  const Objective& objective_;
  Places places_;
};

// The current point of a search, and why it ended.
struct Course {
  Point now;
  int64_t iterations = 0;
  int status = 0;
  std::string message = {};
  bool end(int with, const char* text) {
    status = with;
    message = text;
    return true;
  }
  // Counts an iteration; returns whether it was the last one, by maxiter or the callback.
  bool count(const Evaluations& evaluations, const MinimizeOptions& options, int64_t maxiter);
};

// The methods: they change course.now until its message is set.
void bfgs(Evaluations& evaluations, Course& course, const MinimizeOptions& options);
void lbfgsb(Evaluations& evaluations, Course& course, const Box& box, const MinimizeOptions& options);
void trust_region(Evaluations& evaluations, Course& course, const MinimizeOptions& options, bool exact);

}  // namespace plugrad::optimize
