// Linked into tests that also run on sim: fails if a test made two accesses without an order between them.
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sim.hpp>

#include <gtest/gtest.h>

namespace plugrad {
namespace {

class NoHazards final : public ::testing::Environment {
  void TearDown() override {
    const auto* sim = static_cast<const plugrad_sim*>(backend_extension("sim", "sim/0"));
    if (!sim) return;
    char last[256] = "";
    sim->last_hazard(last, sizeof last);
    EXPECT_EQ(sim->hazards(), 0u) << last;
  }
};
[[maybe_unused]] const ::testing::Environment* const registered = ::testing::AddGlobalTestEnvironment(new NoHazards);

}  // namespace
}  // namespace plugrad
