#include <plugrad/io/moons.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/numbers.hpp>

#include <cmath>
#include <numbers>
#include <random>
#include <string>

namespace plugrad::io {
namespace {

// Returns a number in (0, 1]. The distributions of <random> differ between standard libraries; the engine does not.
double uniform(std::mt19937_64& engine) { return (static_cast<double>(engine() >> 11) + 1) * 0x1p-53; }

}  // namespace

Moons make_moons(int64_t count, double noise, uint64_t seed) {
  if (count < 0 || !(noise >= 0)) {
    throw Error(Code::invalid, "[make_moons] expected count and noise of at least 0, got " + std::to_string(count) +
                                   " and " + number_text(noise));
  }
  std::mt19937_64 engine(seed);
  Moons moons;
  for (int64_t i = 0; i < count; ++i) {
    const bool lower = i % 2 != 0;
    const double angle = std::numbers::pi * uniform(engine);
    const double radius = noise * std::sqrt(-2 * std::log(uniform(engine)));
    const double direction = 2 * std::numbers::pi * uniform(engine);
    const double x = lower ? 1 - std::cos(angle) : std::cos(angle);
    const double y = lower ? 0.5 - std::sin(angle) : std::sin(angle);
    moons.points.push_back(static_cast<float>(x + radius * std::cos(direction)));
    moons.points.push_back(static_cast<float>(y + radius * std::sin(direction)));
    moons.labels.push_back(lower ? 1 : 0);
  }
  return moons;
}

}  // namespace plugrad::io
