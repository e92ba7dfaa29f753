// Private ops of a plugin, called by name, with gradients, in compiled steps.
#include <tests/steps/twins.hpp>

namespace plugrad::test {
namespace {

struct ScaleAdd {
  uint32_t struct_size;
  float scale;
};
PrivateOpOptions scaled(float scale) { return {.attributes = attribute_bytes(ScaleAdd{0, scale}), .gradient = {}}; }

struct PrivateOps : ::testing::Test {
  static void SetUpTestSuite() {
    const PluginRecord record = load_plugin(PLUGRAD_OWN_PLUGIN);
    ASSERT_EQ(record.stage, Stage::ready) << record.reason;
  }
  Device device{"own"};
  Tensor vector(const std::vector<float>& values) const {
    return Tensor::from(values, {static_cast<int64_t>(values.size())}, device);
  }
  Tensor scale_add(const Tensor& a, const Tensor& b, const PrivateOpOptions& options) const {
    return private_op("scale_add", {a, b}, {{a.shape(), DType::f32}}, options)[0];
  }
};

TEST_F(PrivateOps, AreListed) {
  const std::vector<PrivateOpInfo> all = private_ops(device);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "scale_add");
  EXPECT_EQ(all[0].opcode, 0x8000u);
  EXPECT_EQ(all[1].outputs, 2);
  EXPECT_EQ(all[0].attribute_bytes, sizeof(ScaleAdd));
  EXPECT_TRUE(private_ops(Device("reference")).empty());
}

TEST_F(PrivateOps, RunByName) {
  const Tensor a = vector({1, 2, 3, 4}), b = vector({10, 20, 30, 40});
  EXPECT_TRUE(close(scale_add(a, b, scaled(2)), {4}, {12, 24, 36, 48}));
  const Tensors halves = private_op("split_halves", {a}, {{{2}, DType::f32}, {{2}, DType::f32}});
  EXPECT_TRUE(close(halves[0], {2}, {1, 2}));
  EXPECT_TRUE(close(halves[1], {2}, {3, 4}));
}

TEST_F(PrivateOps, GetDenseCopiesWhereTheKernelWantsThem) {
  const Tensor a = transpose(reshape(vector({1, 2, 3, 4}), {2, 2})), b = reshape(vector({0, 0, 0, 1}), {2, 2});
  EXPECT_TRUE(close(scale_add(a, b, scaled(1)), {2, 2}, {1, 3, 2, 5}));
}

TEST_F(PrivateOps, AreRecordedWithTheGradientThatTheCallerGives) {
  PrivateOpOptions options = scaled(3);
  options.gradient = [&](const Tensors& grads, const Tensors& inputs, const Tensors& results) {
    EXPECT_EQ(inputs.size(), 2u);
    EXPECT_EQ(results.size(), 1u);
    return Tensors{scale_add(grads[0], grads[0], scaled(2)), grads[0]};
  };
  Tensor a = vector({1, 2}).requires_grad_(), b = vector({5, 6}).requires_grad_();
  const Tensor y = scale_add(a, b, options);
  EXPECT_STREQ(y.op_name(), "scale_add");
  y.backward(vector({1, 10}));
  EXPECT_TRUE(close(a.grad(), {2}, {3, 30}));
  EXPECT_TRUE(close(b.grad(), {2}, {1, 10}));
  EXPECT_FALSE(scale_add(a, b, scaled(3)).requires_grad()) << "without a gradient, there is no graph";
}

TEST_F(PrivateOps, AreCaptured) {
  int calls = 0;
  auto step = compile([&](const Tensor& x) { return ++calls, scale_add(x, x + x, scaled(3)); });
  for (const float i : {1.f, 2.f, 3.f}) EXPECT_TRUE(close(step(vector({i, 2 * i})), {2}, {5 * i, 10 * i}));
  EXPECT_EQ(calls, 1);
}

TEST_F(PrivateOps, AreNamedByProfilers) {
  Profiler profiler;
  scale_add(vector({1}), vector({1}), scaled(1));
  profiler.stop();
  bool named = false;
  for (const ProfileEvent& each : profiler.events()) named |= each.name == "scale_add";
  EXPECT_TRUE(named);
}

TEST_F(PrivateOps, RefuseWhatDoesNotFit) {
  const Tensor a = vector({1, 2});
  const PrivateResult form{{2}, DType::f32};
  const auto call = [&](const std::string& name, const Tensors& inputs, const std::vector<PrivateResult>& results,
                        const PrivateOpOptions& options = {}) {
    return [=] { private_op(name, inputs, results, options); };
  };
  EXPECT_TRUE(throws(Code::invalid, {"[nothing]", "own:0", "scale_add, split_halves, fails"}, call("nothing", {a}, {form})));
  EXPECT_TRUE(throws(Code::invalid, {"[scale_add]", "1 input given, 2 expected"}, call("scale_add", {a}, {form})));
  EXPECT_TRUE(throws(Code::invalid, {"forms of 2 results given, 1 expected"}, call("scale_add", {a, a}, {form, form})));
  EXPECT_TRUE(throws(Code::invalid, {"attributes of 0 bytes given, 8 expected"}, call("scale_add", {a, a}, {form})));
  EXPECT_TRUE(throws(Code::invalid, {"needs an input"}, call("scale_add", {}, {form})));
  EXPECT_TRUE(throws(Code::invalid, {"[scale_add]", "undefined"}, call("scale_add", {a, Tensor()}, {form}, scaled(1))));
  const Tensor other = ones({2}, DType::f32, Device("reference"));
  EXPECT_TRUE(throws(Code::invalid, {"own:0 and on reference:0"}, call("scale_add", {a, other}, {form}, scaled(1))));
  EXPECT_TRUE(throws(Code::invalid, {"reference:0 has no private op", "none"}, call("scale_add", {other}, {form})));
  EXPECT_TRUE(throws(Code::unsupported, {"[scale_add]", "no kernel for f64 <- f32, f32"},
                     call("scale_add", {a, a}, {{{2}, DType::f64}}, scaled(1))));
  EXPECT_TRUE(throws(Code::internal, {"fails", "it always does"}, call("fails", {a}, {form})));
}

}  // namespace
}  // namespace plugrad::test
