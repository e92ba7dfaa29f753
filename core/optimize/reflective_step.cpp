#include <core/optimize/reflective_step.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plugrad::optimize {
namespace {

// The model along start + t direction: a t^2 + b t + c.
struct Parabola {
  double a, b, c;
  double operator()(double t) const { return t * (a * t + b) + c; }
  // Where the parabola is lowest in [low, high].
  double lowest_in(double low, double high) const {
    double best = (*this)(low) <= (*this)(high) ? low : high;
    const double middle = -0.5 * b / a;
    if (a != 0 && low < middle && middle < high && (*this)(middle) < (*this)(best)) best = middle;
    return best;
  }
};

Parabola along(const ScaledModel& model, const Vector& start, const Vector& direction) {
  const Vector v = product(model.jacobian, direction), u = product(model.jacobian, start);
  const Vector curved = times(direction, model.diagonal);
  return {0.5 * (inner(v, v) + inner(curved, direction)),
          inner(model.gradient, direction) + inner(u, v) + inner(curved, start),
          0.5 * inner(u, u) + inner(model.gradient, start) + 0.5 * inner(times(start, model.diagonal), start)};
}

// The length along a direction to the first bound, and which elements reach it there.
struct Hit {
  double length;
  std::vector<bool> elements;
};

Hit first_hit(const Vector& x, const Vector& direction, const Box& box) {
  Vector lengths(x.size(), kInfinity);
  double least = kInfinity;
  for (size_t i = 0; i < x.size(); ++i) {
    if (direction[i] == 0) continue;
    lengths[i] = std::max((box.lower[i] - x[i]) / direction[i], (box.upper[i] - x[i]) / direction[i]);
    least = std::min(least, lengths[i]);
  }
  Hit hit{least, std::vector<bool>(x.size())};
  for (size_t i = 0; i < x.size(); ++i) hit.elements[i] = direction[i] != 0 && lengths[i] == least;
  return hit;
}

bool is_in(const Vector& x, const Box& box) {
  for (size_t i = 0; i < x.size(); ++i)
    if (!(x[i] >= box.lower[i] && x[i] <= box.upper[i])) return false;
  return true;
}
}  // namespace

double ScaledModel::value(const Vector& p) const {
  const Vector jp = product(jacobian, p);
  return 0.5 * inner(jp, jp) + inner(gradient, p) + 0.5 * inner(times(p, diagonal), p);
}

Vector inside(Vector x, const Box& box, double by) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double low = box.lower[i], high = box.upper[i];
    const auto margin = [&](double bound) { return by * std::max(1.0, std::abs(bound)); };
    if (std::isfinite(low) && x[i] - low <= std::min(high - x[i], margin(low)))
      x[i] = by == 0 ? std::nextafter(low, high) : low + margin(low);
    else if (std::isfinite(high) && high - x[i] <= std::min(x[i] - low, margin(high)))
      x[i] = by == 0 ? std::nextafter(high, low) : high - margin(high);
    if (x[i] < low || x[i] > high) x[i] = 0.5 * (low + high);
  }
  return x;
}

ReflectiveStep reflective_step(const ScaledModel& model, const Vector& x, const Vector& scale, const Vector& p,
                               double radius, const Box& box, double theta) {
  const auto made = [&](const Vector& scaled_step) {
    return ReflectiveStep{times(scaled_step, scale), scaled_step, -model.value(scaled_step)};
  };
  const Vector whole = times(p, scale);
  if (is_in(plus(x, 1, whole), box)) return made(p);
  const Hit hit = first_hit(x, whole, box);
  const Vector cut = scaled(p, hit.length);
  ReflectiveStep best = made(scaled(cut, theta));
  const auto offer = [&](ReflectiveStep other) {
    if (other.reduction > best.reduction) best = std::move(other);
  };

  Vector reflected = p;
  for (size_t i = 0; i < x.size(); ++i)
    if (hit.elements[i]) reflected[i] = -reflected[i];
  const Vector on_bound = plus(x, 1, times(cut, scale));
  const double to_bound = first_hit(on_bound, times(reflected, scale), box).length;
  const double to_end = std::min(to_bound, length_to_sphere(cut, reflected, radius));
  if (to_end > 0) {
    const double low = (1 - theta) * hit.length / to_end, high = to_end == to_bound ? theta * to_bound : to_end;
    if (low <= high) offer(made(plus(cut, along(model, cut, reflected).lowest_in(low, high), reflected)));
  }

  const Vector down = scaled(model.gradient, -1);
  const double sphere = radius / norm(down), bound = first_hit(x, times(down, scale), box).length;
  const double most = bound < sphere ? theta * bound : sphere;
  offer(made(scaled(down, along(model, Vector(x.size()), down).lowest_in(0, most))));
  return best;
}

}  // namespace plugrad::optimize
