// Memory runs out at each step of a program: the error names op and bytes, no memory stays allocated, and the next run gives
// the expected result.
#include <tests/soak/scenarios.hpp>
#include <tests/soak/simulated.hpp>

#include <plugrad/runtime/error.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace plugrad::test {
namespace {

// A matrix of this side is larger than 10 MiB, so that it has its own memory segment.
constexpr int64_t kOwnSegment = 1700, kSmall = 40;

class Exhausted : public testing::TestWithParam<Scenario> {
 protected:
  void prepare(int64_t side) {
    side_ = side;
    expected_ = run();
    device_.sync();
    device_.trim();
    hazards_ = simulated::sim().hazards();
    active_ = device_.memory().active;
  }
  void TearDown() override { EXPECT_EQ(simulated::sim().hazards(), hazards_) << simulated::last_hazard(); }

  double run() { return GetParam().run(device_, side_); }
  // Runs the scenario with this fault at the n-th call. Returns whether the run reached that call.
  bool survives(uint32_t fault, uint64_t n, const std::regex& message) {
    SCOPED_TRACE(std::string(GetParam().name) + ", call " + std::to_string(n));
    device_.trim();
    const uint64_t before = simulated::calls(fault);
    simulated::sim().arm(simulated::handle(), fault, n);
    bool failed = false;
    try {
      // The core may have used another kernel, which may round differently.
      EXPECT_NEAR(run(), expected_, 1e-4 * std::abs(expected_));
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.code(), Code::out_of_memory) << error.what();
      EXPECT_TRUE(std::regex_search(error.what(), message)) << error.what();
    }
    simulated::sim().arm(simulated::handle(), fault, 0);
    device_.sync();
    EXPECT_EQ(device_.memory().active, active_) << "something keeps memory";
    failures_ += failed;
    return failed || simulated::calls(fault) - before >= n;
  }

  const Device device_ = simulated::open();
  int64_t side_ = 0;
  double expected_ = 0;
  uint64_t hazards_ = 0, active_ = 0, failures_ = 0;
};

TEST_P(Exhausted, AtEachAllocation) {
  prepare(kOwnSegment);
  const std::regex message(R"(^\[[a-z_]+\] out of memory on sim:0: \d+ bytes wanted)");
  uint64_t n = 1;
  while (survives(PLUGRAD_SIM_FULL, n, message)) ++n;
  EXPECT_GT(failures_, 2u) << "of " << n;
  EXPECT_EQ(run(), expected_);
}

// The device itself runs out of memory inside an op. The core trims its cache and tries again, then tries another kernel.
TEST_P(Exhausted, AtEachOp) {
  prepare(kSmall);
  const std::regex message(R"(^\[[a-z_]+\] sim:0 has too little memory for )");
  uint64_t n = 1;
  while (survives(PLUGRAD_SIM_NO_ROOM, n, message)) ++n;
  EXPECT_GT(n, 10u);
  EXPECT_EQ(run(), expected_);
}

INSTANTIATE_TEST_SUITE_P(Programs, Exhausted, testing::ValuesIn(scenarios()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace plugrad::test
