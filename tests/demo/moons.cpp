#include <tests/demo/moons.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace plugrad::test {
namespace {
using nlohmann::json;

json read(const std::string& name) {
  std::ifstream file(test::fixture_path(name));
  if (!file) throw std::runtime_error("fixture " + name + " is missing");
  return json::parse(file);
}

Moons load() {
  const json start = read("moons_micrograd.json"), run = read("moons_losses.json");
  Moons all;
  for (const json& point : start.at("points"))
    for (const json& each : point) all.points.push_back(each.get<double>());
  for (const json& label : start.at("labels")) all.labels.push_back(label.get<double>());
  for (const json& each : start.at("parameters")) all.parameters.push_back(each.get<double>());
  for (const json& step : run) all.steps.push_back({step.at(1).get<double>(), step.at(2).get<double>()});
  if (all.points.size() != 200 || all.labels.size() != 100 || all.parameters.size() != 337 || all.steps.size() != 100)
    throw std::runtime_error("the fixtures of moons have other sizes than expected");
  return all;
}
}  // namespace

const Moons& moons() {
  static const Moons all = load();
  return all;
}

void expect_moons_step(size_t step, double loss, double accuracy) {
  const Moons::Step& wanted = moons().steps.at(step);
  EXPECT_NEAR(loss, wanted.loss, 1e-9 * std::abs(wanted.loss)) << "step " << step;
  EXPECT_DOUBLE_EQ(accuracy, wanted.accuracy) << "step " << step;
}

}  // namespace plugrad::test
