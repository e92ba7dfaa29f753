// has_kernel: the ops that a device can run by itself.
#include <plugrad/runtime/kernels.hpp>
#include <tests/core/expect.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {

TEST(Kernels, ADeviceSaysWhichItHas) {
  const Device device = default_device();
  EXPECT_TRUE(has_kernel(device, "add", {{"f32"}, {"f32"}, {"f32"}}));
  EXPECT_TRUE(has_kernel(device, "add", {{"f32"}, {"f32"}, {"f32", true}}));
  EXPECT_TRUE(has_kernel(device, "cast", {{"bool"}, {"f32"}}));
  EXPECT_FALSE(has_kernel(device, "add", {{"f32"}, {"f32"}, {"i64"}}));
  EXPECT_FALSE(has_kernel(device, "exp", {{"bool"}, {"bool"}}));
}

TEST(Kernels, UnknownNamesAreErrors) {
  const Device device = default_device();
  EXPECT_TRUE(throws(Code::invalid, {"no op 'explode'"}, [&] { has_kernel(device, "explode", {}); }));
  EXPECT_TRUE(throws(Code::invalid, {"no dtype 'f33'"}, [&] { has_kernel(device, "exp", {{"f33"}, {"f32"}}); }));
  EXPECT_TRUE(throws(Code::invalid, {"exp has 2 operands", "1 were given"}, [&] { has_kernel(device, "exp", {{"f32"}}); }));
}

}  // namespace
}  // namespace plugrad::test
