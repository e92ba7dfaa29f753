// Replays on a device whose plugin takes a whole list of calls.
#include <tests/steps/sim_device.hpp>

namespace plugrad::test {
namespace {

class CallLists : public SimDevice {
 protected:
  uint64_t lists() const { return sim->lists(handle()); }
  uint64_t runs() const { return sim->runs(handle(), 0); }
};

// A chain of calls that does not become one fusion, because of the matrix product.
Tensor chain(const Tensor& x) { return exp(matmul(relu(x) * 2, x)) + 1; }

TEST_F(CallLists, RunOnceForEachReplay) {
  auto step = compile(chain);
  const Tensor x = randn({3, 3});
  step(x);
  const uint64_t before = lists(), kernels = runs(), counted = default_device().counters().kernels;
  for (int i = 0; i < 5; ++i) step(x);
  EXPECT_EQ(lists(), before + 5);
  EXPECT_EQ((runs() - kernels) % 5, 0u);
  EXPECT_EQ(default_device().counters().kernels - counted, runs() - kernels);
  EXPECT_NE(step.explain().find("calls run as one list"), std::string::npos) << step.explain();
}

TEST_F(CallLists, FollowArgumentsResultsNumbersAndDraws) {
  const auto run = [](bool compiled) {
    manual_seed(7);
    Tensor w = ones({3, 3}).requires_grad_();
    nn::Adam optimizer({w}, 0.1);
    Twin step(compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor loss = sum(dropout(matmul(x, w), 0.5));
      loss.backward();
      optimizer.step();
      return loss;
    });
    Tensors results;
    for (int i = 0; i < 6; ++i) {
      if (i == 4) optimizer.set_rate(0.02);
      results.push_back(step(randn({3, 3})));  // all results are kept, so each has its own memory
    }
    results.push_back(w.detach());
    return results;
  };
  const uint64_t before = lists();
  const Tensors replayed = run(true);
  EXPECT_EQ(lists(), before + 4);  // the first two calls record: the optimiser has no state yet
  EXPECT_TRUE(same_bytes(replayed, run(false)));
}

// The failure names the number of a single call, and the next run is right.
TEST_F(CallLists, FailAtTheCallThatFails) {
  auto step = compile(chain);
  const Tensor x = randn({3, 3}), wanted = chain(x);
  step(x);
  const uint64_t first = lists(), kernels = runs();
  step(x);
  const uint64_t calls = runs() - kernels;
  ASSERT_GT(calls, 2u);
  default_device().sync();
  sim->arm(handle(), PLUGRAD_SIM_FAIL, 2);
  const Tensor lost = step(x);
  try {
    (void)lost.to_vector<float>();
    ADD_FAILURE() << "no failure";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::device_error) << error.what();
    EXPECT_EQ(error.first(), error.last());
  }
  EXPECT_TRUE(same_bytes({step(x)}, {wanted}));
  EXPECT_EQ(lists(), first + 3);
}

TEST_F(CallLists, RunCallByCallWhenTheyAreDeclined) {
  auto step = compile(chain);
  const Tensor x = randn({3, 3}), y = randn({3, 3}), of_x = chain(x), of_y = chain(y);
  step(x);
  for (const uint32_t fault : {PLUGRAD_SIM_UNSUPPORTED, PLUGRAD_SIM_NO_ROOM}) {
    const uint64_t before = lists();
    sim->arm(handle(), fault, 1);
    EXPECT_TRUE(same_bytes({step(y)}, {of_y}));
    EXPECT_EQ(lists(), before);
    EXPECT_TRUE(same_bytes({step(x)}, {of_x}));
    EXPECT_EQ(lists(), before + 1);
  }
}

TEST_F(CallLists, ThatAreRefusedHaveDoneNothing) {
  const auto run = [&](bool compiled) {
    manual_seed(3);
    Tensor w = ones({2, 2}).requires_grad_();
    nn::Adam optimizer({w}, 0.1);
    Twin step(compiled, [&] {
      optimizer.zero_grad();
      sum(dropout(matmul(w, w), 0.5)).backward();
      optimizer.step();
    });
    for (int i = 0; i < 4; ++i) {
      if (i == 2 && compiled) {
        sim->arm(handle(), PLUGRAD_SIM_REFUSE, 3);
        EXPECT_TRUE(throws(Code::internal, {"compile", "sim:0", "refused by an armed fault"}, [&] { step(); }));
      }
      step();
    }
    EXPECT_EQ(optimizer.steps(), 4);
    return Tensors{w.detach(), rand({3})};
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

// Other streams wait for the call that writes, not for the call with the list's first number.
TEST_F(CallLists, AreWaitedForByCopies) {
  sim->set_latency(handle(), 200);
  auto step = compile(chain);
  for (int i = 0; i < 5; ++i) {
    const Tensor x = to(randn({3, 3}, DType::f32, Device("cpu")), Device("sim"));
    EXPECT_TRUE(same_bytes({to(step(x), Device("cpu"))}, {to(chain(x), Device("cpu"))}));
  }
  sim->set_latency(handle(), 0);
}

}  // namespace
}  // namespace plugrad::test
