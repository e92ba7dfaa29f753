// Compiled functions that are saved to files.
#include <plugrad/io/file.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/io/saved_model.hpp>
#include <tests/steps/twins.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace plugrad::test {
namespace {
using Function = std::function<Tensors(const Tensors&)>;

// The name contains the process, because the same tests run on other devices at the same time.
std::string scratch(const std::string& name) {
  return ::testing::TempDir() + "plugrad-saved-" + std::to_string(getpid()) + "-" + name;
}

// Saves f recorded on x, loads it on the same device, and compares the results of both, also for other elements.
void expect_same(const std::string& name, const Function& f, const Tensors& x, const Tensors& other) {
  const NoGrad unrecorded;
  CompiledStep step({.name = name});
  const auto run = [&](const Tensors& given) { return StepResults{f(given)}; };
  step.call(x, "", run);
  const std::string path = scratch(name);
  save_model(step, path);
  const SavedModel model = load_model(path, x[0].device());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bytes(model(x), f(x))) << name;
    EXPECT_TRUE(same_bytes(model(other), f(other))) << name;
  }
  std::filesystem::remove(path);
}

Tensor uniform(const Shape& shape) { return rand(shape, DType::f32, default_device(), -2, 2); }

TEST(Saved, ComputesTheSame) {
  manual_seed(1);
  const Tensor w = uniform({6, 5}), table = uniform({10, 6});
  expect_same("chain",
              [&](const Tensors& x) -> Tensors {
                const Tensor y = tanh(matmul(x[0], w) + 1) * 2, z = where(gt(y, 0), y, exp(y));
                return {z, sum(z, {1}), softmax(z, 1), max(z), slice(transpose(z), 0, 1, 3) * 3, pow(abs(y), 3)};
              },
              {uniform({4, 6})}, {uniform({4, 6})});
  expect_same("in place",
              [&](const Tensors& x) -> Tensors {
                Tensor y = zeros({4, 6});
                slice(y, 0, 1, 3).copy_(slice(x[0], 0, 0, 2));
                y.add_(table.defined() ? slice(table, 0, 2, 6) : x[0]);
                return {y, x[0], cat({y, x[0]}, 1)};
              },
              {uniform({4, 6})}, {uniform({4, 6})});
  expect_same("words",
              [&](const Tensors& x) -> Tensors {
                const Tensor e = embedding(table, x[0]);
                return {e, argsort(sum(e, {1}), 0), cumsum(e, 0), cast(gt(e, 0), DType::i64)};
              },
              {i64({1, 2, 3})}, {i64({9, 0, 4})});
}

struct Cnn final : nn::Module {
  nn::Conv2d conv{1, 4, {3}};
  nn::BatchNorm2d norm{4};
  nn::Linear out{4 * 3 * 3, 3};
  void members(nn::Members& all) override { all("conv", conv), all("norm", norm), all("out", out); }
  Tensor forward(const Tensor& x) const override { return out(flatten(max_pool2d(relu(norm(conv(x))), {2}), 1)); }
};

struct Block final : nn::Module {
  nn::LayerNorm first{{8}}, second{{8}};
  nn::Linear queries{8, 24}, joined{8, 8}, up{8, 32}, down{32, 8};
  void members(nn::Members& all) override {
    all("first", first), all("second", second), all("queries", queries), all("joined", joined), all("up", up);
    all("down", down);
  }
  Tensor forward(const Tensor& x) const override {
    const std::vector<Tensor> parts = chunk(queries(first(x)), 3, -1);
    const Tensor y = x + joined(scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true));
    return y + down(gelu(up(second(y))));
  }
};

template <class Model> void expect_model(const std::string& name, const Shape& shape) {
  manual_seed(2);
  Model model;
  model.eval();
  expect_same(name, [&](const Tensors& x) -> Tensors { return {model(x[0])}; }, {uniform(shape)}, {uniform(shape)});
}

TEST(Saved, RunsModels) {
  expect_model<Cnn>("cnn", {2, 1, 8, 8});
  expect_model<Block>("block", {3, 7, 8});
}

// If the other device lacks ops, the core composes them of other ops.
TEST(Saved, RunsOnAnotherDevice) {
  manual_seed(2);
  const std::string path = scratch("moved");
  Tensor expected;
  const Tensor x = rand({3, 7, 8}, DType::f32, Device("reference"), -1, 1);
  {
    const NoGrad unrecorded;
    Block model;
    model.eval();
    auto step = compile([&](const Tensor& in) { return model(in); });
    expected = step(to(x, default_device()));
    save_model(step, path);
  }
  const SavedModel model = load_model(path, Device("reference"));
  EXPECT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].shape, (Shape{3, 7, 8}));
  EXPECT_EQ(model.outputs()[0].shape, (Shape{3, 7, 8}));
  EXPECT_LT(max(abs(model({x})[0] - to(expected, Device("reference")))).item<float>(), 1e-5);
  std::filesystem::remove(path);
}

TEST(Saved, RefusesWhatIsMoreThanAForwardPass) {
  const std::string path = scratch("refused");
  const Tensor x = uniform({3}), kept = zeros({3});
  const auto refused = [&](const std::string& why, const std::function<Tensor(const Tensor&)>& f) {
    auto step = compile(f, {.name = "f"});
    step(x);
    EXPECT_TRUE(throws(Code::invalid, {"[save]", why}, [&] { save_model(step, path); }));
  };
  refused("draws random numbers", [](const Tensor& in) { return in * rand({3}); });
  refused("writes to a tensor that is older", [&](const Tensor& in) {
    const NoGrad unrecorded;
    Tensor to = kept;
    to.add_(in);
    return in * 2;
  });
  auto none = compile([](const Tensor& in) { return in * 2; }, {.name = "none"});
  EXPECT_TRUE(throws(Code::invalid, {"'none' has no recording"}, [&] { save_model(none, path); }));
  none(x);
  none(uniform({4}));
  EXPECT_TRUE(throws(Code::invalid, {"'none' has 2 recordings"}, [&] { save_model(none, path); }));
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Files of earlier versions lack results that an op got since: here the mean and rstd of layer_norm.
TEST(Saved, FilesOfEarlierVersionsAreRead) {
  const NoGrad unrecorded;
  const std::string path = scratch("earlier");
  const Tensor x = uniform({4, 6}), weight = uniform({6});
  auto step = compile([&](const Tensor& in) { return relu(layer_norm(in, {6}, weight, weight)); });
  step(x);
  save_model(step, path);
  const std::map<std::string, Tensor> tensors = io::read_safetensors(path).tensors;
  std::string text = io::read_safetensors_header(path).metadata.at("plugrad.program");
  const size_t call = text.find("\"op\":\"layer_norm\",\"out\":[");
  if (call != std::string::npos) {  // the device has the op
    const size_t first = text.find("]]", call) + 2, last = text.find("]]]", call) + 2;
    ASSERT_LT(first, last) << text;
    text.erase(first, last - first);
    io::write_safetensors(path, tensors, {{"plugrad.program", text}});
  }
  EXPECT_TRUE(same_bytes(load_model(path)({x}), {step(x)})) << text;
  std::filesystem::remove(path);
}

TEST(Saved, WeightsAreNotTheCallersToWrite) {
  const std::string path = scratch("weights");
  const Tensor w = uniform({3, 4});
  auto step = compile([&](const Tensor& x) -> Tensors { return {matmul(x, w), w}; });
  const Tensor x = uniform({2, 3});
  for (int i = 0; i < 2; ++i) step(x);
  save_model(step, path);
  const SavedModel model = load_model(path);
  const Tensor first = model({x})[0];
  for (int i = 0; i < 4; ++i) {
    const Tensors results = model({x});
    EXPECT_TRUE(same_bytes({results[0]}, {first}));
    Tensor(results[1]).fill_(1);
  }
}

class Damaged : public ::testing::Test {
 protected:
  void SetUp() override {
    const NoGrad unrecorded;
    const Tensor w = uniform({3, 2});
    auto step = compile([&](const Tensor& x) { return relu(matmul(x, w)); });
    step(uniform({4, 3}));
    save_model(step, path_);
    text_ = io::read_safetensors_header(path_).metadata.at("plugrad.program");
    tensors_ = io::read_safetensors(path_).tensors;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  // Changes the text of the file, and expects that loading it fails for this reason.
  void expect(const std::string& why, const std::string& from, const std::string& to) {
    std::string text = text_;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    io::write_safetensors(path_, tensors_, {{"plugrad.program", text.replace(at, from.size(), to)}});
    EXPECT_TRUE(throws(Code::io_error, {"[load_model] '" + path_ + "'", why}, [&] { load_model(path_); })) << text;
  }
  const std::string path_ = scratch("damaged");
  std::string text_;
  std::map<std::string, Tensor> tensors_;
};

TEST_F(Damaged, IsRefusedWithTheReason) {
  expect("version 2, and this plugrad reads version 1: use a newer plugrad", "\"version\":1", "\"version\":2");
  expect("there is no op 'sgd_step' for models", "\"op\":\"relu\"", "\"op\":\"sgd_step\"");
  expect("call 1 (matmul): it has another number of operands", "\"op\":\"relu\"", "\"op\":\"matmul\"");
  const size_t at = text_.find("\"in\":[[") + 6;  // the first input of the product
  expect("its input 0 is a number, and must be a view of memory", text_.substr(at, text_.find("]],", at) + 2 - at), "1");
  expect("its dtype is 'f33'", "\"f32\"", "\"f33\"");
  expect("it has no 'calls'", "\"calls\"", "\"colls\"");
  expect("it has no tensor 'weight.9'", "weight.2", "weight.9");
  io::write_safetensors(path_, tensors_, {});
  EXPECT_TRUE(throws(Code::io_error, {"write one with save_model"}, [&] { load_model(path_); }));
  std::ofstream(path_, std::ios::binary) << "nothing";
  EXPECT_TRUE(throws(Code::io_error, {path_}, [&] { load_model(path_); }));
}

TEST_F(Damaged, InputsAreChecked) {
  const SavedModel model = load_model(path_);
  EXPECT_TRUE(throws(Code::invalid, {"it takes 1 inputs, not 2"}, [&] { model({uniform({4, 3}), uniform({4, 3})}); }));
  EXPECT_TRUE(
      throws(Code::invalid, {"input 0 is (3, 4) f32, and the model takes (4, 3) f32"}, [&] { model({uniform({3, 4})}); }));
}

}  // namespace
}  // namespace plugrad::test
