// Devices: their kernels; two devices: copies in both directions, gradients through copies, leaves that move.
#include <plugrad/runtime/kernels.hpp>
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

class TwoDevices : public ::testing::Test {
 protected:
  const Device here = default_device(), there = other_device();
  void SetUp() override { ASSERT_NE(here, there) << "no second device among those built"; }
};

TEST_F(TwoDevices, CopiesOfEveryDtypeAndLayout) {
  for (DType dtype : kRealDTypes) {
    const Tensor x = cast(counting({3, 4}), dtype);
    for (const Tensor& each : {x, transpose(x), slice(x, 1, -1, -5, -2), slice(x, 0, 1, 3), expand(select(x, 0, 1), {2, 4}),
                               zeros({0, 2}, dtype), select(select(x, 0, 2), 0, 1)}) {
      const Tensor moved = to(each, there);
      EXPECT_EQ(moved.device(), there);
      EXPECT_EQ(moved.dtype(), dtype);
      EXPECT_TRUE(close(moved, each.shape(), elements(each))) << dtype << each.strides();
      EXPECT_TRUE(close(to(moved, here), each.shape(), elements(each))) << dtype << each.strides();
    }
  }
  const Tensor x = counting({2});
  EXPECT_TRUE(to(x, here).is_same(x));
  EXPECT_TRUE(throws(Code::invalid, {"[to]", "no device"}, [&] { to(x, Device()); }));
}

TEST_F(TwoDevices, LargeCopies) {
  const Tensor x = arange(0, 5000000, 1, DType::i64);  // several chunks where it is staged
  EXPECT_TRUE(eq(sum(ne(to(to(x, there), here), x)), 0).item<bool>());
}

TEST_F(TwoDevices, GradientsFlowBack) {
  const Tensor x = f64({1, 2}).requires_grad_(), w = to(f64({3, 4}), there).requires_grad_();
  const Tensor y = exp(to(x * x, there)) * w;
  sum(to(y, here) * x).backward();
  const Tensor x0 = x.detach(), w0 = to(w.detach(), here), e = exp(x0 * x0);
  EXPECT_EQ(x.grad().device(), here);
  EXPECT_EQ(w.grad().device(), there);
  EXPECT_TRUE(close(x.grad() - (e * w0 + x0 * x0 * e * w0 * 2), {2}, {0, 0}, 1e-12));
  EXPECT_TRUE(close(to(w.grad(), here) - e * x0, {2}, {0, 0}, 1e-12));
}

TEST_F(TwoDevices, LeavesMove) {
  Tensor x = transpose(counting({2, 3})).detach().requires_grad_();
  sum(x * x).backward();
  const Tensor handle = x;
  x.move_to_(there);
  EXPECT_EQ(handle.device(), there);
  EXPECT_TRUE(x.requires_grad() && x.is_leaf());
  EXPECT_TRUE(close(x, {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.grad().device(), there);
  EXPECT_TRUE(close(x.grad(), {3, 2}, {0, 6, 2, 8, 4, 10}));
  sum(x).backward();
  EXPECT_TRUE(close(x.grad(), {3, 2}, {1, 7, 3, 9, 5, 11}));
  x.move_to_(here);
  x.move_to_(here);
  EXPECT_TRUE(close(x + 0, {3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(throws(Code::invalid, {"[move_to_]", "to()"}, [&] { (x * 2).move_to_(there); }));
}

// The leaf left the device on which the graph saved it: the pass throws and changes nothing.
TEST_F(TwoDevices, ALeafThatMovedSinceItWasSavedIsNoticed) {
  Tensor x = f64({1, 2}).requires_grad_(), w = f64({3, 4}).requires_grad_();
  const Tensor loss = sum(x * w);
  x.move_to_(there);
  EXPECT_TRUE(throws(Code::invalid, {}, [&] { loss.backward(); }));
  EXPECT_FALSE(x.grad().defined() || w.grad().defined());
}

// The graph saved nothing, so the pass computes the gradient, but on the old device: the moved leaf cannot accumulate it.
TEST_F(TwoDevices, GradientsOfALeafThatMovedDoNotMeetThoseOfItsOldDevice) {
  Tensor x = f64({1, 2}).requires_grad_();
  sum(x + 1).backward();
  const Tensor later = sum(x + 1);
  x.move_to_(there);
  EXPECT_TRUE(throws(Code::invalid, {"[backward]", here.name(), there.name(), "moved"}, [&] { later.backward(); }));
  EXPECT_TRUE(close(x.grad(), {2}, {1, 1}));
}

TEST_F(TwoDevices, GeneratorsAreOfADevice) {
  manual_seed(5);
  const std::vector<double> first = elements(rand({4}));
  EXPECT_EQ(generator_state(there), (GeneratorState{5, 0}));
  EXPECT_EQ(elements(rand({4}, DType::f32, there)), first);
}

// --- has_kernel: the ops that a device can run by itself.

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
