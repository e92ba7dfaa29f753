// The core's counters match the calls that the plugin saw.
#include <tests/core/expect.hpp>

#include <plugrad/sim.hpp>
#include <tests/paths.hpp>

namespace plugrad::test {
namespace {

class Counters : public ::testing::Test {
 protected:
  Counters() {
    load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
    device = Device("sim");
    set_default_device(device);
    sim = static_cast<const plugrad_sim*>(backend_extension("sim", "sim/0"));
    other = Device("sim:1");
  }
  void expect_equal() const {
    device.sync();
    EXPECT_EQ(device.counters().kernels, sim->runs(sim->device(0), 0));
    EXPECT_EQ(other.counters().kernels, sim->runs(sim->device(1), 0));
    EXPECT_EQ(sim->hazards(), 0u);
  }
  Device device, other;
  const plugrad_sim* sim = nullptr;
};

Tensor network_loss(const Tensor& x, const Tensor& w, const Tensor& v, const Tensor& targets) {
  return cross_entropy(matmul(relu(matmul(x, w)), v), targets);
}

TEST_F(Counters, KernelsOfATrainingEqualThosePluginCounted) {
  manual_seed(1);
  Tensor w = randn({5, 8}).requires_grad_(), v = randn({8, 3}).requires_grad_(), m, none;
  const Tensor x = rand({6, 5}), targets = i64({0, 1, 2, 0, 1, 2});
  m = zeros_like(v.detach());
  for (int step = 0; step < 5; ++step) {
    network_loss(x, w, v, targets).backward();
    sgd_step(w, none, w.grad(), {.rate = 0.1});
    sgd_step(v, m, v.grad(), {.rate = 0.1, .momentum = 0.9});
    w.clear_grad(), v.clear_grad();
  }
  expect_equal();
  EXPECT_GT(device.counters().kernels, 50u);
  EXPECT_EQ(device.counters().host_fallbacks, 0u);
}

TEST_F(Counters, AnOpOfOneElementIsOneKernel) {
  const Tensor a = full({1}, 2), b = full({1}, 3);
  const uint64_t before = sim->runs(sim->device(0), 0), adds = sim->runs(sim->device(0), PLUGRAD_OP_ADD);
  for (int i = 0; i < 100; ++i) a + b;
  EXPECT_EQ(sim->runs(sim->device(0), 0) - before, 100u);
  EXPECT_EQ(sim->runs(sim->device(0), PLUGRAD_OP_ADD) - adds, 100u);
  expect_equal();
}

TEST_F(Counters, TransposedWeightsGetTheirGradientsWithoutACopy) {
  Tensor w = counting({3, 5}).requires_grad_(), v = counting({3, 2}).requires_grad_();
  const Tensor x = counting({4, 5}), y = counting({5, 3});
  const auto copies = [&] { return sim->runs(sim->device(0), PLUGRAD_OP_COPY); };
  const uint64_t before = copies();
  sum(matmul(x, transpose(w))).backward();
  sum(matmul(transpose(v), transpose(y))).backward();
  sum(matmul(transpose(v), w)).backward();
  EXPECT_EQ(copies(), before);
  const Tensor ones_w = ones({4, 3}), ones_v = ones({2, 5});
  EXPECT_EQ(elements(w.grad()), elements(matmul(transpose(ones_w), x) + matmul(v.detach(), ones_v)));
  EXPECT_EQ(elements(v.grad()), elements(matmul(transpose(y) + w.detach(), transpose(ones_v))));
}

TEST_F(Counters, OpsOnNothingCallNothing) {
  const Tensor none = zeros({0, 3});
  const uint64_t before = device.counters().kernels;
  const Tensor out = exp(none + none) * 2, total = matmul(transpose(none), none);
  EXPECT_EQ(device.counters().kernels - before, 1u) << "the fill of the product alone";
  expect_equal();
}

TEST_F(Counters, EachOpOfAListIsOneKernel) {
  const Tensor x = counting({4, 4}), index = zeros({4, 4}, DType::i64);
  struct Row {
    uint32_t opcode;
    std::function<void()> call;
  };
  const Row rows[] = {
      {PLUGRAD_OP_NEG, [&] { -x; }},
      {PLUGRAD_OP_MUL, [&] { x * 2; }},
      {PLUGRAD_OP_SUM, [&] { sum(x, {0}); }},
      {PLUGRAD_OP_MATMUL, [&] { matmul(x, x); }},
      {PLUGRAD_OP_MATMUL_ADD, [&] { linear(x, x, select(x, 0, 0)); }},
      {PLUGRAD_OP_LT, [&] { gt(x, 2); }},
      {PLUGRAD_OP_CAST, [&] { cast(x, DType::f32); }},
      {PLUGRAD_OP_GATHER, [&] { gather(x, 0, index); }},
      {PLUGRAD_OP_FILL, [&] { zeros({2}); }},
      {PLUGRAD_OP_IOTA, [&] { arange(0, 9); }},
      {PLUGRAD_OP_UNIFORM, [&] { rand({3}); }},
      {PLUGRAD_OP_COPY, [&] { clone(x); }},
      {PLUGRAD_OP_RELU, [&] { relu(x); }},
      {PLUGRAD_OP_LOG_SOFTMAX, [&] { log_softmax(x); }},
  };
  for (const Row& row : rows) {
    const uint64_t all = sim->runs(sim->device(0), 0), own = sim->runs(sim->device(0), row.opcode);
    row.call();
    EXPECT_EQ(sim->runs(sim->device(0), 0) - all, 1u) << row.opcode;
    EXPECT_EQ(sim->runs(sim->device(0), row.opcode) - own, 1u) << row.opcode;
  }
  expect_equal();
}

TEST_F(Counters, TransfersAreCounted) {
  const Tensor x = counting({100});
  const DeviceCounters before = device.counters();
  elements(x);
  elements(slice(x, 0, 10, 20));
  const Tensor there = to(x, other);
  EXPECT_EQ(device.counters().downloads - before.downloads, 2u);
  counting({3});
  EXPECT_EQ(device.counters().uploads - before.uploads, 1u);
  EXPECT_TRUE(close(there, {100}, elements(x)));
  expect_equal();
}

// A call that a kernel refuses with UNSUPPORTED is not counted; the calls that the core makes instead are counted.
TEST_F(Counters, RefusedCallsAreNotCounted) {
  const Tensor x = counting({2, 2}), y = transpose(x);
  sim->arm(sim->device(0), PLUGRAD_SIM_UNSUPPORTED, 1);
  EXPECT_TRUE(close(x + y, {2, 2}, {0, 3, 3, 6}));
  EXPECT_GT(device.counters().layout_copies, 0u);
  sim->arm(sim->device(0), PLUGRAD_SIM_NO_ROOM, 1);
  EXPECT_TRUE(close(x + y, {2, 2}, {0, 3, 3, 6}));
  expect_equal();
}

// With an empty cache and no alternative, the error reports that the kernel ran out of memory.
TEST_F(Counters, AKernelShortOfMemorySaysSo) {
  const Tensor x = counting({2, 2});
  device.sync();
  device.trim();
  sim->arm(sim->device(0), PLUGRAD_SIM_NO_ROOM, 1);
  const Thrown t = thrown([&] { exp(x); });
  EXPECT_EQ(t.code, Code::out_of_memory) << t.message;
  EXPECT_NE(t.message.find("[exp] " + device.name()), std::string::npos) << t.message;
  EXPECT_TRUE(close(exp(x * 0), {2, 2}, {1, 1, 1, 1}));
  expect_equal();
}

// A kernel that fails in the middle of a pass.
TEST_F(Counters, AFailureInsideBackwardChangesNoGradient) {
  const Tensor x = f64({1, 2}).requires_grad_(), w = f64({3, 4}).requires_grad_();
  for (uint64_t n = 1; n <= 8; ++n) {
    const Tensor loss = sum(exp(x * w) * w + x);
    sim->arm(sim->device(0), PLUGRAD_SIM_REFUSE, n);
    const Thrown t = thrown([&] { loss.backward(); });
    sim->arm(sim->device(0), PLUGRAD_SIM_REFUSE, 0);
    EXPECT_EQ(t.any, !x.grad().defined()) << n;
    EXPECT_EQ(x.grad().defined(), w.grad().defined()) << n;
    Tensor(x).clear_grad(), Tensor(w).clear_grad();
  }
  const Tensor loss = sum(x * w);
  loss.backward();
  EXPECT_TRUE(close(x.grad(), {2}, {3, 4}));
  expect_equal();
}

}  // namespace
}  // namespace plugrad::test
