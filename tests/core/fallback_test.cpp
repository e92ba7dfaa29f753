// A device that lacks ops, layouts or dtypes gives the same results by dense copies, decompositions or the host, or an error
// that names the missing op, layout or dtype. Options hold for the life of a process, so each case is a process of its own.
#include <tests/core/workloads.hpp>

#include <plugrad/sdk/ops.hpp>
#include <plugrad/sim.hpp>
#include <tests/paths.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

class Lacking : public ::testing::Test {
 protected:
  // sim, opened with these options; "reference" computes the expected results.
  void open(const OptionList& options) {
    load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
    set_device_options("sim", options);
    device = Device("sim");
    set_default_device(device);
  }
  DeviceCounters counters() const { return device.counters(); }
  Device device, reference = Device("reference");
};

void expect_same_results(Device device, Device reference, bool counts = true) {
  const std::vector<double> values = spread(24, -2, 2);
  for (const Workload& each : kWorkloads) {
    if (each.counts && !counts) continue;
    const Tensor expected = each.run(Tensor::from(values, {4, 6}, reference));
    const Thrown t = thrown([&] {
      EXPECT_TRUE(close(each.run(Tensor::from(values, {4, 6}, device)), expected.shape(), elements(expected), 1e-13))
          << each.name;
    });
    EXPECT_FALSE(t.any) << each.name << ": " << t.message;
  }
}

// --- Layouts: dense copies, natively.

// In memory, the number in the place of a mask has the shape of the scores.
void expect_attention_without_mask(Device device, Device reference) {
  const uint64_t before = device.counters().decompositions;
  const auto run = [](Device on) {
    const Tensor x = Tensor::from(spread(24, -2, 2), {2, 4, 3}, on).requires_grad_();
    const Tensor out = scaled_dot_product_attention(x, x, x);
    return std::pair(elements(out), elements(grad({sum(out * out)}, {x})[0]));
  };
  const auto found = run(device), expected = run(reference);
  EXPECT_TRUE(close(found.first, expected.first, 1e-13));
  EXPECT_TRUE(close(found.second, expected.second, 1e-13));
  EXPECT_EQ(device.counters().decompositions, before);
}

// The inputs of IOTA are immediates, so dense copies do not help.
void expect_arange(bool works) {
  const auto count = [] { EXPECT_TRUE(close(arange(1, 7, 2, DType::f64), {3}, {1, 3, 5})); };
  if (works) count();
  else EXPECT_TRUE(throws(Code::unsupported, {"[iota]", "sim:0"}, count));
  set_fallback(Fallback::allow);
  count();
}

TEST_F(Lacking, NoLayoutsButDense) {
  open({{"without_layouts", "63"}});
  expect_same_results(device, reference);
  expect_attention_without_mask(device, reference);
  EXPECT_GT(counters().layout_copies, 0u);
  EXPECT_EQ(counters().host_fallbacks, 0u);
  expect_arange(false);
}

TEST_F(Lacking, NoNegativeSteps) {
  open({{"without_layouts", "4"}});
  expect_same_results(device, reference);
  EXPECT_GT(counters().layout_copies, 0u);
  EXPECT_EQ(counters().host_fallbacks, 0u);
  expect_arange(true);
}

TEST_F(Lacking, NoBroadcast) {
  open({{"without_layouts", "2"}});
  expect_same_results(device, reference);
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

TEST_F(Lacking, NoImmediates) {
  open({{"without_layouts", "32"}});
  expect_same_results(device, reference);
  expect_attention_without_mask(device, reference);
  EXPECT_GT(counters().layout_copies, 0u);
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

TEST_F(Lacking, NoUnalignedOperands) {
  open({{"without_layouts", "8"}});
  expect_same_results(device, reference);
  EXPECT_TRUE(close(exp(slice(zeros({9}, DType::f64), 0, 1, 9)), {8}, {1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_GT(counters().layout_copies, 0u);
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

// --- Ops of tier 1: decompositions.

const std::string kTier1 = [] {
  std::string names;
  for (const OpInfo& op : kOps)
    if (op.tier == 1) names += (names.empty() ? "" : "+") + std::string(op.name);
  return names;
}();

TEST_F(Lacking, NoOpsOfTierOne) {
  open({{"without_ops", kTier1}});
  expect_same_results(device, reference);
  EXPECT_GT(counters().decompositions, 0u);
  EXPECT_EQ(counters().host_fallbacks, 0u);
  const auto* sim = static_cast<const plugrad_sim*>(backend_extension("sim", "sim/0"));
  EXPECT_EQ(counters().kernels, sim->runs(sim->device(0), 0));
}

TEST_F(Lacking, NoGradientOfAttention) {
  open({{"without_ops", "ATTENTION_BACKWARD"}});
  expect_same_results(device, reference);
  EXPECT_GT(counters().decompositions, 0u);
}

TEST_F(Lacking, NoOpsOfTierOneAndOnlyDense) {
  open({{"without_ops", kTier1}, {"without_layouts", "63"}});
  expect_same_results(device, reference, false);
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

TEST_F(Lacking, ArgsortIsASortingNetwork) {
  open({{"without_ops", "ARGSORT"}});
  uint32_t seed = 7;
  for (DType dtype : kRealDTypes)
    for (const Shape& shape : {Shape{1}, Shape{2}, Shape{3}, Shape{8}, Shape{67}, Shape{3, 6}, Shape{2, 5, 3}})
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (bool descending : {false, true}) {
          const std::vector<double> values = tied_values(dtype, shape.count(), ++seed);
          const Tensor order = argsort(of(dtype, values, shape), axis, descending);
          EXPECT_TRUE(close(order, shape, orders(values, shape, axis, descending))) << dtype << shape << axis << descending;
        }
  EXPECT_TRUE(close(argsort(i64({INT64_MAX, INT64_MIN, 3})), {3}, {1, 2, 0}));
  EXPECT_TRUE(close(argsort(i64({INT64_MAX, INT64_MIN, 3}), 0, true), {3}, {0, 2, 1}));
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

// The composition numbers the elements of x, so the device must take immediates as operands.
TEST_F(Lacking, MaxPoolIsComposed) {
  open({{"without_ops", "MAX_POOL+MAX_POOL_BACKWARD"}});
  const auto pooled = [](const Tensor& x) {
    const auto loss = [](const Tensor& y) { return exp(max_pool2d(reshape(y, {1, 4, 6}), {3, 2}, {1, 2}, {1})); };
    const Tensor indices = max_pool1d_with_indices(reshape(x, {2, 12}), {3}).indices;
    return loss_gradient(x, loss) + sum(loss(x)) + sum(cast(indices, DType::f64));
  };
  const std::vector<double> values = spread(24, -2, 2);
  const Tensor expected = pooled(Tensor::from(values, {4, 6}, reference));
  EXPECT_TRUE(close(pooled(Tensor::from(values, {4, 6}, device)), {4, 6}, elements(expected), 1e-13));
  EXPECT_GT(counters().decompositions, 0u);
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

// 1024 elements take 55 steps, whatever the number of lines.
TEST_F(Lacking, TheStepsOfASortingNetworkDoNotGrowWithItsLines) {
  open({{"without_ops", "ARGSORT"}});
  const Tensor line = of(DType::f32, spread(1024, -1, 1), {1, 1024}), lines = contiguous(expand(line, {16, 1024}));
  const uint64_t before = counters().kernels;
  argsort(line);
  const uint64_t taken = counters().kernels - before;
  EXPECT_LT(taken, 55 * 30u);
  argsort(lines);
  EXPECT_EQ(counters().kernels - before, 2 * taken);
}

TEST_F(Lacking, DecompositionsKeepSpecialValues) {
  open({{"without_ops", kTier1}});
  const double nan = std::nan(""), inf = INFINITY;
  EXPECT_TRUE(same_bits(elements(relu(f64({-1, -0.0, 0, nan, inf, -inf}))), {0, -0.0, 0, nan, inf, 0}));
  EXPECT_TRUE(close(sigmoid(f64({-inf, -800, 0, 800, inf, nan})), {6}, {0, 0, 0.5, 1, 1, nan}));
  EXPECT_TRUE(close(log_softmax(f64({inf, 0, -inf, -inf, 1000, 0}, {3, 2})), {3, 2}, {nan, nan, nan, nan, 0, -1000}));
  const Tensor x = f64({0, -0.0, nan, 1}).requires_grad_();
  EXPECT_TRUE(close(grad({sum(relu(x))}, {x})[0], {4}, {0, 0, 1, 1}));
  EXPECT_TRUE(throws(Code::index_error, {}, [] { elements(cross_entropy(counting({2, 3}), i64({0, 3}))); }));
  EXPECT_TRUE(close(exp(f64({0})), {1}, {1}));
}

// --- No kernel on the device can help: an error, or the host.

TEST_F(Lacking, ErrorsNameOpDtypesAndDevice) {
  open({{"without_ops", "EXP+MATMUL"}});
  EXPECT_EQ(fallback(), Fallback::error);
  EXPECT_TRUE(throws(Code::unsupported, {"[exp]", "sim:0", "f64 <- f64", "set_fallback", "PLUGRAD_FALLBACK"},
                     [] { exp(f64({1})); }));
  EXPECT_TRUE(throws(Code::unsupported, {"[matmul]", "sim:0", "f64 <- f64, f64"},
                     [] { matmul(counting({2, 2}), counting({2, 2})); }));
  EXPECT_TRUE(close(f64({1}) + 1, {1}, {2}));
  EXPECT_EQ(counters().host_fallbacks, 0u);
}

TEST_F(Lacking, OpsFallBackWhereThePolicyAllowsIt) {
  open({{"without_ops", "EXP+MATMUL+ADD+SUM+SCATTER_ADD+WHERE+FILL+UNIFORM"}});
  set_fallback(Fallback::allow);
  expect_same_results(device, reference);
  EXPECT_GT(counters().host_fallbacks, 0u);
  const uint64_t before = counters().host_fallbacks;
  exp(f64({1}));
  EXPECT_EQ(counters().host_fallbacks - before, 1u);
  EXPECT_TRUE(throws(Code::index_error, {"scatter_add"}, [] { scatter_add(counting({2}), 0, i64({5}), f64({1})); }));
}

TEST_F(Lacking, WarningsSayWhatWasDoneWhere) {
  open({{"without_ops", "EXP"}});
  set_fallback(Fallback::warn);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) lines.emplace_back(line);
  });
  exp(f64({1}));
  set_log_sink({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("exp"), std::string::npos);
  EXPECT_NE(lines[0].find("sim:0"), std::string::npos);
}

TEST_F(Lacking, ADtypeThatTheDeviceLacksIsAnError) {
  open({{"without_dtypes", "f64"}});
  const Tensor x = f64({1, 2});
  EXPECT_TRUE(throws(Code::unsupported, {"[add]", "f64", "sim:0"}, [&] { x + x; }));
  EXPECT_TRUE(throws(Code::unsupported, {"[fill]", "f64", "sim:0"}, [] { zeros({2}, DType::f64); }));
  EXPECT_TRUE(close(x, {2}, {1, 2}));
  EXPECT_TRUE(close(of(DType::f32, {1, 2}, {2}) * 2, {2}, {2, 4}));
}

// The device cannot even copy that dtype.
TEST_F(Lacking, ADtypeThatTheDeviceLacksFallsBack) {
  open({{"without_dtypes", "f64"}});
  set_fallback(Fallback::allow);
  expect_same_results(device, reference);
  EXPECT_GT(counters().host_fallbacks, 0u);
}

TEST_F(Lacking, IndicesThatTheDeviceLacksFallBack) {
  open({{"without_dtypes", "i64+bool"}, {"without_layouts", "63"}});
  set_fallback(Fallback::allow);
  expect_same_results(device, reference);
}

TEST_F(Lacking, TheEnvironmentsPolicyHolds) {
  setenv("PLUGRAD_FALLBACK", "allow", 1);
  open({{"without_ops", "EXP"}});
  EXPECT_EQ(fallback(), Fallback::allow);
  EXPECT_TRUE(close(exp(f64({0})), {1}, {1}));
}

TEST_F(Lacking, BadOptionsAreRefusedWithTheReason) {
  EXPECT_TRUE(throws(Code::invalid, {"without_ops", "'EXPO'"}, [&] { open({{"without_ops", "EXPO"}}); }));
  EXPECT_TRUE(throws(Code::invalid, {"latenzy"}, [&] { set_device_options("sim", {{"latenzy", "1"}}), Device("sim"); }));
}

}  // namespace
}  // namespace plugrad::test
