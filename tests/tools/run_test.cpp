#include <tests/tools/process.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/npy.hpp>
#include <plugrad/io/saved_model.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace plugrad::test {
namespace {

class RunCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const NoGrad unrecorded;
    const Tensor w = full({3, 2}, 0.5, DType::f32, host_);
    auto step = compile([&](const Tensor& x) { return relu(matmul(x, w)); });
    step(zeros({4, 3}, DType::f32, host_));
    save_model(step, file_);
    io::write_npy(input_, ones({4, 3}, DType::f32, host_));
  }
  const Device host_{"reference"};
  const Scratch scratch_;
  const std::string file_ = scratch_.path("model.plugrad"), input_ = scratch_.path("x.npy"), made_ = scratch_.path("y");
};

TEST_F(RunCommand, RunsASavedModel) {
  const Outcome text = plugrad_run({"run", file_, "--device", "reference", "--input", input_});
  EXPECT_EQ(text.status, 0) << text.err;
  expect_mentions(text.out, "output 0, (4, 2) f32:\n[[1.5 1.5]");
  const Outcome json = plugrad_run({"run", file_, "--device", "reference", "--input", input_, "--output", made_, "--json"});
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out).at("outputs").at(0).at("shape"), nlohmann::json({4, 2}));
  const Tensor y = io::read_npy(made_ + "-0.npy", host_);
  EXPECT_EQ(y.shape(), (Shape{4, 2}));
}

TEST_F(RunCommand, DescribesAModel) {
  const Outcome text = plugrad_run({"run", file_, "--device", "reference", "--describe"});
  EXPECT_EQ(text.out, "input 0: (4, 3) f32\noutput 0: (4, 2) f32\n") << text.err;
}

TEST_F(RunCommand, ExportsAndRunsAnOnnxModel) {
  const std::string onnx = scratch_.path("model.onnx");
  const Outcome written = plugrad_run({"export", file_, onnx, "--device", "reference"});
  EXPECT_EQ(written.status, 0) << written.err;
  expect_mentions(written.out, "the model is in " + onnx);
  const Outcome described = plugrad_run({"run", onnx, "--device", "reference", "--describe"});
  EXPECT_EQ(described.out, "input input0: float32 (4, 3)\noutput output0: float32 (4, 2)\n") << described.err;
  const std::string saved = scratch_.path("again.plugrad");
  const Outcome text = plugrad_run({"run", onnx, "--device", "reference", "--input", "input0=" + input_, "--save", saved});
  EXPECT_EQ(text.status, 0) << text.err;
  expect_mentions(text.out, "output output0, (4, 2) f32:\n[[1.5 1.5]");
  const Outcome again = plugrad_run({"run", saved, "--device", "reference", "--input", input_});
  expect_mentions(again.out, "output 0, (4, 2) f32:\n[[1.5 1.5]");
  const Outcome json = plugrad_run({"run", onnx, "--device", "reference", "--input", input_, "--output", made_, "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("outputs").at(0).at("name"), "output0") << json.err;
}

TEST_F(RunCommand, SaysWhatIsWrongWithAnOnnxModel) {
  const std::string onnx = scratch_.path("model.onnx");
  plugrad_run({"export", file_, onnx, "--device", "reference"});
  const Outcome none = plugrad_run({"run", onnx, "--device", "reference"});
  EXPECT_EQ(none.status, 2);
  expect_mentions(none.err, "the model takes 1 inputs, and --input was given 0 times; it takes");
  expect_mentions(none.err, "input0: float32 (4, 3)");
  const Outcome unknown = plugrad_run({"run", onnx, "--device", "reference", "--input", "y=" + input_});
  EXPECT_EQ(unknown.status, 2);
  expect_mentions(unknown.err, "is not an input of the model");
  const Outcome bound = plugrad_run({"run", onnx, "--device", "reference", "--bind", "input0"});
  EXPECT_EQ(bound.status, 2);
  expect_mentions(bound.err, "NAME=NUMBER or NAME=FILE.npy is expected");
  const Outcome saved = plugrad_run({"run", file_, "--device", "reference", "--bind", "x=1"});
  EXPECT_EQ(saved.status, 2);
  expect_mentions(saved.err, "--bind and --save are for ONNX models");
  EXPECT_EQ(plugrad_run({"export", file_}).status, 2);
}

TEST_F(RunCommand, SaysWhatIsWrong) {
  const Outcome none = plugrad_run({"run", file_, "--device", "reference"});
  EXPECT_EQ(none.status, 2);
  expect_mentions(none.err, "the model takes 1 inputs ((4, 3) f32), and --input was given 0 times");
  io::write_npy(input_, ones({3}, DType::f32, host_));
  const Outcome other = plugrad_run({"run", file_, "--device", "reference", "--input", input_});
  EXPECT_EQ(other.status, 1);
  expect_mentions(other.err, "is (3,) f32, and input 0 of the model is (4, 3) f32");
  const Outcome missing = plugrad_run({"run", scratch_.path("nothing")});
  EXPECT_EQ(missing.status, 1);
  expect_mentions(missing.err, "nothing");
}

}  // namespace
}  // namespace plugrad::test
