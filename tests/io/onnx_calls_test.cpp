// Calls of one model from several threads.
#include <plugrad/io/onnx.hpp>
#include <plugrad/runtime/cancel.hpp>

#include <tests/io/onnx_bytes.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace plugrad::test {
namespace {
using io::OnnxModel;

class OnnxCalls : public ::testing::Test {
 protected:
  OnnxModel model(const std::string& bytes, const io::OnnxOptions& options = {}) {
    return io::load_onnx(scratch_.write("model.onnx", bytes), options);
  }
  Scratch scratch_;
};

// A convolution, whose weights the device may keep in a form of its own, shared by all lanes.
std::string pixels_model(const std::vector<float>& weight) {
  const auto outputs = static_cast<int64_t>(weight.size() / 16 / 9);
  return onnx_model({{onnx_node("Conv", {"x", "w"}, {"y"})},
                     {onnx_value("x", kOnnxF32, {"batch", "16", "height", "width"})},
                     {onnx_value("y", kOnnxF32, {"batch", std::to_string(outputs), "rows", "columns"})},
                     {onnx_tensor<float>("w", {outputs, 16, 3, 3}, weight)}});
}
std::string pixels_model() {
  std::vector<float> weight(32 * 16 * 9);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i * 7 % 13) / 8 - 1;
  return pixels_model(weight);
}

// Calls from six threads at once, from the model's first call on; the calls go through the inputs in turn.
int wrong_calls(const OnnxModel& model, const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 6; ++first)
    threads.emplace_back([&, first] {
      for (size_t i = first; i < first + 40; ++i)
        wrong += !equal(model({inputs[i % inputs.size()]})[0], expected[i % inputs.size()]);
    });
  for (std::thread& each : threads) each.join();
  return wrong;
}

TEST_F(OnnxCalls, LanesRunAtOnce) {
  const std::string bytes = pixels_model();
  const OnnxModel by_op = model(bytes, {.record = false});
  std::vector<Tensor> inputs, expected;
  for (const int64_t side : {3, 5, 8}) {
    inputs.push_back(rand({1, 16, side, side + 1}));
    expected.push_back(by_op({inputs.back()})[0]);
  }
  EXPECT_EQ(wrong_calls(model(bytes, {.lanes = 3}), inputs, expected), 0);
  EXPECT_EQ(wrong_calls(model(bytes, {.record = false, .lanes = 3}), inputs, expected), 0);
}

// Values of the file are computed by whichever call comes first, and their constants are freed. NonZero reads elements, so
// that no call is recorded.
TEST_F(OnnxCalls, LanesShareWhatTheFileDetermines) {
  for (const char* last : {"Relu", "NonZero"}) {
    const std::string bytes = onnx_model(
        {{onnx_node("Transpose", {"w"}, {"columns"}), onnx_node("Concat", {"two", "rest"}, {"sizes"}, {onnx_int("axis", 0)}),
          onnx_node("Reshape", {"columns", "sizes"}, {"weights"}), onnx_node("MatMul", {"x", "weights"}, {"sums"}),
          onnx_node(last, {"sums"}, {"y"})},
         {onnx_value("x", kOnnxF32, {"batch", "2"})},
         {onnx_value("y", *last == 'R' ? kOnnxF32 : kOnnxI64, {"rows", "columns"})},
         {onnx_tensor<float>("w", {3, 2}, {1, 2, 3, 4, 5, 6}), onnx_tensor<int64_t>("two", {1}, {2}),
          onnx_tensor<int64_t>("rest", {1}, {-1})}});
    std::vector<Tensor> inputs, expected;
    for (const int64_t batch : {1, 4, 9}) {
      inputs.push_back(rand({batch, 2}));
      expected.push_back(model(bytes)({inputs.back()})[0]);
    }
    for (int i = 0; i < 5; ++i) EXPECT_EQ(wrong_calls(model(bytes, {.lanes = 4}), inputs, expected), 0);
  }
}

// relu(x w) of a matrix of 128 KiB after 64 bytes of another file.
std::string external_model() {
  const std::string w = onnx_external("w", {256, 128}, "weights", "64", "131072");
  return onnx_model({{onnx_node("MatMul", {"x", "w"}, {"xw"}), onnx_node("Relu", {"xw"}, {"y"})},
                     {onnx_value("x", kOnnxF32, {"n", "256"})},
                     {onnx_value("y", kOnnxF32, {"n", "128"})},
                     {w}});
}
std::string of_floats(size_t count, float value) {
  const std::vector<float> all(count, value);
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(float)};
}

TEST_F(OnnxCalls, WeightsArePagesOfTheFile) {
  const std::string path = scratch_.write("weights", of_floats(16 + 256 * 128, 0.5));
  const Tensor x = full({3, 256}, 1);
  const OnnxModel mapped = model(external_model(), {.record = false});
  const OnnxModel copied = model(external_model(), {.record = false, .mmap = false});
  const OnnxModel replayed = model(external_model());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(replayed({x})[0].to_vector<float>(), std::vector(384, 128.0f));
  EXPECT_EQ(replayed.explain().find("own forms") != std::string::npos, default_device().name() == "cpu:0");
  for (const OnnxModel* each : {&mapped, &copied}) EXPECT_EQ((*each)({x})[0].to_vector<float>(), std::vector(384, 128.0f));
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << of_floats(16 + 256 * 128, 0.25);
  const bool is_on_host = !default_device().name().starts_with("sim");
  EXPECT_EQ(mapped({x})[0].to_vector<float>(), std::vector(384, is_on_host ? 64.0f : 128.0f));
  EXPECT_EQ(copied({x})[0].to_vector<float>(), std::vector(384, 128.0f));
}

TEST_F(OnnxCalls, AFileThatWasCutIsAnError) {
  const std::string path = scratch_.write("weights", of_floats(16 + 256 * 128, 0.5));
  const OnnxModel cut = model(external_model());
  std::filesystem::resize_file(path, 1000);
  expect_mentions(io_error_of([&] { cut({full({3, 256}, 1)}); }), "which has 1000");
  const OnnxModel whole = model(pixels_model(std::vector<float>(128 * 16 * 9)));
  std::filesystem::resize_file(scratch_.path("model.onnx"), 20000);
  expect_mentions(io_error_of([&] { whole({zeros({1, 16, 4, 4})}); }), "was cut short");
}

// Each value of a call has 1 KiB for each unit of n.
TEST_F(OnnxCalls, MemoryIsBounded) {
  const std::string bytes =
      onnx_model({{onnx_node("Softmax", {"x"}, {"s"}, {onnx_int("axis", 1)}), onnx_node("MatMul", {"s", "w"}, {"m"}),
                   onnx_node("Softmax", {"m"}, {"y"}, {onnx_int("axis", 1)})},
                  {onnx_value("x", kOnnxF32, {"n", "256"})},
                  {onnx_value("y", kOnnxF32, {"n", "256"})},
                  {onnx_external("w", {256, 256}, "weights", "0", "262144")}});
  scratch_.write("weights", of_floats(256 * 256, 0.25));
  const OnnxModel bounded = model(bytes, {.lanes = 2, .memory = 1 << 20});
  const OnnxModel unbounded = model(bytes, {.record = false});
  std::vector<Tensor> inputs, results;
  for (const int64_t n : {1, 20, 60, 200}) inputs.push_back(rand({n, 256}));
  const auto call = [&](const Tensor& x) {
    results.push_back(bounded({x})[0]);  // results of earlier calls do not count
    EXPECT_TRUE(equal(results.back(), unbounded({x})[0])) << x.shape().text();
  };
  for (int round = 0; round < 4; ++round)
    for (const Tensor& x : inputs) call(x);
  expect_mentions(bounded.explain(), "4 calls recorded, 8 replayed");
  for (const Tensor& x : inputs) {
    expect_mentions(error_of([&] { bounded({zeros({1600, 256})}); }, Code::out_of_memory),
                    "out of the memory of '" + scratch_.path("model.onnx") + "': 1638400 bytes wanted");
    call(x);
  }
}

// What the model keeps is not the caller's, also as an element of a sequence.
TEST_F(OnnxCalls, ResultsHaveMemoryOfTheirOwn) {
  for (const bool record : {false, true}) {
    const OnnxModel shapes =
        model(onnx_model({{onnx_node("Shape", {"x"}, {"s"}), onnx_node("SequenceConstruct", {"x", "s"}, {"both"}),
                           onnx_node("SequenceAt", {"both", "one"}, {"y"})},
                          {onnx_value("x", kOnnxI64, {"n"})},
                          {onnx_value("y", kOnnxI64, {"m"})},
                          {onnx_tensor<int64_t>("one", {}, {1})}}),
              {.record = record});
    for (int i = 0; i < 4; ++i) {
      const Tensor y = shapes({zeros({5}, DType::i64)})[0];
      EXPECT_EQ(y.to_vector<int64_t>(), std::vector<int64_t>{5});
      Tensor(y).fill_(77);
    }
  }
}

// A million rounds, which take longer than the test waits.
TEST_F(OnnxCalls, CallsAreCancelledWhileTheyRunAndWhileTheyWait) {
  const std::string body =
      onnx_graph({{onnx_node("Neg", {"carried"}, {"next"}), onnx_node("Identity", {"on"}, {"again"})},
                  {onnx_value("i", kOnnxI64, {}), onnx_value("on", kOnnxBool, {}), onnx_value("carried", kOnnxF32, {"n"})},
                  {onnx_value("again", kOnnxBool, {}), onnx_value("next", kOnnxF32, {"n"})}});
  const OnnxModel loop =
      model(onnx_model({{onnx_node("Loop", {"rounds", "", "x"}, {"y"}, {onnx_graph_attribute("body", body)})},
                        {onnx_value("rounds", kOnnxI64, {}), onnx_value("x", kOnnxF32, {"n"})},
                        {onnx_value("y", kOnnxF32, {"n"})}}));
  const Tensor x = full({3}, 2), few = full({}, 3, DType::i64), many = full({}, 1'000'000, DType::i64);
  std::stop_source sources[2];
  std::vector<std::thread> threads;
  for (std::stop_source& each : sources)
    threads.emplace_back([&] {
      const CancelScope scope(each.get_token());
      expect_mentions(error_of([&] { loop({many, x}); }, Code::cancelled), "[cancel] the call was cancelled");
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // one of them runs, the other waits for its lane
  for (const size_t first : {1, 0}) {
    sources[first].request_stop();
    threads[first].join();
  }
  EXPECT_EQ(loop({few, x})[0].to_vector<float>(), std::vector<float>(3, -2));
}

}  // namespace
}  // namespace plugrad::test
