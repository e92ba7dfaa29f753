// A profiler's records of ops that a device lacks. Options hold for the life of a process, so each case is a process of its
// own.
#include <tests/core/expect.hpp>

#include <plugrad/autograd/memory.hpp>
#include <plugrad/runtime/profiler.hpp>
#include <tests/paths.hpp>

#include <algorithm>

namespace plugrad::test {
namespace {

class Profiled : public ::testing::Test {
 protected:
  void open(const OptionList& options) {
    load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
    set_device_options("sim", options);
    device = Device("sim");
    set_default_device(device);
    before = device.counters();
  }
  // Returns the events of an op that ran in this way.
  static std::vector<ProfileEvent> ran(const Profiler& profile, const std::string& name, How how) {
    std::vector<ProfileEvent> found;
    std::ranges::copy_if(profile.events(), std::back_inserter(found), [&](const ProfileEvent& each) {
      return each.kind == EventKind::op && each.name == name && each.how == how;
    });
    return found;
  }
  Device device;
  DeviceCounters before{};
};

TEST_F(Profiled, ADecompositionIsFollowedByItsOps) {
  open({{"without_ops", "SIGMOID"}});
  const Tensor x = f64({1, 2});
  Profiler profile;
  sigmoid(x);
  profile.stop();
  EXPECT_EQ(ran(profile, "sigmoid", How::decomposed).size(), 1u);
  EXPECT_TRUE(ran(profile, "sigmoid", How::native).empty());
  EXPECT_FALSE(ran(profile, "exp", How::native).empty());
  EXPECT_EQ(profile.rows({.sort = ProfileSort::fallbacks})[0].name, "sigmoid");
  EXPECT_NE(profile.table({.sort = ProfileSort::fallbacks}).find("decomposed"), std::string::npos);
}

TEST_F(Profiled, DenseCopiesAreInsideTheOpThatNeedsThem) {
  open({{"without_layouts", "63"}});
  const Tensor x = counting({4, 6});
  Profiler profile;
  matmul(x, transpose(x));
  profile.stop();
  EXPECT_EQ(ran(profile, "matmul", How::dense_copies).size(), 1u);
  const auto copies = ran(profile, "copy", How::native);
  ASSERT_EQ(copies.size(), device.counters().layout_copies - before.layout_copies);
  EXPECT_EQ(copies[0].depth, 1u);
}

TEST_F(Profiled, AFallbackIsAnEventOfBothDevices) {
  open({{"without_ops", "EXP"}});
  set_fallback(Fallback::allow);
  const Tensor x = f64({1, 2});
  Profiler profile;
  exp(x);
  profile.stop();
  ASSERT_EQ(ran(profile, "exp", How::host).size(), 1u);
  EXPECT_EQ(ran(profile, "exp", How::host)[0].device, device);
  ASSERT_EQ(ran(profile, "exp", How::native).size(), 1u);
  EXPECT_NE(ran(profile, "exp", How::native)[0].device, device);
  EXPECT_EQ(device.counters().host_fallbacks - before.host_fallbacks, 1u);
  const std::vector<ProfileRow> rows = profile.rows({.sort = ProfileSort::fallbacks});
  EXPECT_EQ(rows[0].how, How::host);
  EXPECT_EQ(rows[0].fallbacks, 1u);
}

TEST_F(Profiled, AWiderDTypeIsAnEventAroundTheConversions) {
  open({});
  const Tensor x = of(DType::f16, {1, 2}, {2});
  Profiler profile;
  exp(x);
  profile.stop();
  EXPECT_EQ(device.counters().widened - before.widened, 1u);
  ASSERT_EQ(ran(profile, "exp", How::wider).size(), 1u);
  EXPECT_EQ(ran(profile, "exp", How::native).size(), 1u) << "in f32";
  EXPECT_EQ(ran(profile, "cast", How::native).size(), 2u);
}

TEST_F(Profiled, AnOpThatNothingCanRunIsNoEvent) {
  open({{"without_ops", "EXP"}});
  const Tensor x = f64({1, 2});
  Profiler profile;
  EXPECT_TRUE(throws(Code::unsupported, {"[exp]"}, [&] { exp(x); }));
  neg(x);
  profile.stop();
  for (const ProfileEvent& each : profile.events()) {
    EXPECT_NE(each.name, "exp");
    EXPECT_EQ(each.depth, 0u);
  }
}

}  // namespace
}  // namespace plugrad::test
