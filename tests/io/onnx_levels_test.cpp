// Values that an ONNX model keeps between calls, and sizes that a file chooses.
#include <plugrad/io/onnx.hpp>

#include <tests/io/onnx_bytes.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plugrad::test {
namespace {
using io::OnnxModel;
using io::OnnxValue;
using Floats = std::vector<float>;

class OnnxLevels : public ::testing::Test {
 protected:
  OnnxModel model(const OnnxGraphText& graph, int64_t opset = 18) {
    return io::load_onnx(scratch_.write("model.onnx", onnx_model(graph, opset)));
  }
  // A model of one node, whose input x has any shape, and whose other inputs are constants.
  OnnxModel of_node(const std::string& node, int type, const std::vector<std::string>& constants, int64_t opset = 18) {
    return io::load_onnx(
        scratch_.write("model.onnx", onnx_model({{node},
                                                 {onnx_field(1, "x") + onnx_field(2, onnx_field(1, onnx_number(1, type)))},
                                                 {onnx_field(1, "y")},
                                                 constants},
                                                opset)));
  }
  Scratch scratch_;
};

std::string any_value(const std::string& name, int type = kOnnxF32) {
  return onnx_field(1, name) + onnx_field(2, onnx_field(1, onnx_number(1, type)));
}
Tensor floats(const Floats& values) { return Tensor::from(values, {static_cast<int64_t>(values.size())}); }
Floats of(const Tensor& x) { return cast(x, DType::f32).to_vector<float>(); }
std::string constant_branch(const std::string& name, float value) {
  return onnx_graph({{}, {}, {any_value(name)}, {onnx_tensor<float>(name, {}, {value})}});
}
std::string choice(const std::string& condition) {
  return onnx_node("If", {condition}, {"r"},
                   {onnx_graph_attribute("then_branch", constant_branch("one", 1)),
                    onnx_graph_attribute("else_branch", constant_branch("two", 2))});
}

TEST_F(OnnxLevels, NegativeIndicesCountFromTheEndOfEachShape) {
  const std::string index = onnx_tensor<int64_t>("i", {1}, {-1});
  for (const char* op : {"Gather", "GatherElements"}) {
    const OnnxModel last = of_node(onnx_node(op, {"x", "i"}, {"y"}), kOnnxF32, {index});
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(of(last({floats({1, 2, 3})})[0]), (Floats{3})) << op;
      EXPECT_EQ(of(last({floats({1, 2, 3, 4, 5})})[0]), (Floats{5})) << op;
    }
  }
}

TEST_F(OnnxLevels, AConditionOfShapesChoosesForEachShape) {
  const OnnxModel negated = model({{onnx_node("Size", {"x"}, {"s"}), onnx_node("Equal", {"s", "three"}, {"c"}), choice("c"),
                                    onnx_node("Neg", {"r"}, {"y"})},
                                   {any_value("x")},
                                   {any_value("y")},
                                   {onnx_tensor<int64_t>("three", {}, {3})}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(of(negated({floats({0, 0, 0})})[0]), (Floats{-1}));
    EXPECT_EQ(of(negated({floats({0, 0})})[0]), (Floats{-2}));
  }
}

TEST_F(OnnxLevels, AConditionOfTheRoundChoosesInEachRound) {
  const std::string body = onnx_graph({{onnx_node("Equal", {"i", "k"}, {"c"}), choice("c"), onnx_node("Neg", {"r"}, {"n"}),
                                        onnx_node("Add", {"sum", "n"}, {"more"}), onnx_node("Identity", {"on"}, {"again"})},
                                       {any_value("i", kOnnxI64), any_value("on", kOnnxBool), any_value("sum")},
                                       {any_value("again", kOnnxBool), any_value("more")},
                                       {onnx_tensor<int64_t>("k", {}, {2})}});
  const OnnxModel loop = model({{onnx_node("Loop", {"rounds", "", "x"}, {"y"}, {onnx_graph_attribute("body", body)})},
                                {any_value("x")},
                                {any_value("y")},
                                {onnx_tensor<int64_t>("rounds", {}, {4})}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of(loop({floats({0})})[0]), (Floats{-7}));
}

TEST_F(OnnxLevels, APositionInASequenceMayChange) {
  const OnnxModel at = model({{onnx_node("SequenceConstruct", {"a", "b"}, {"all"}),
                               onnx_node("SequenceAt", {"all", "i"}, {"r"}), onnx_node("Neg", {"r"}, {"y"})},
                              {any_value("i", kOnnxI64)},
                              {any_value("y")},
                              {onnx_tensor<float>("a", {}, {1}), onnx_tensor<float>("b", {}, {2})}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(of(at({full({}, 0, DType::i64)})[0]), (Floats{-1}));
    EXPECT_EQ(of(at({full({}, 1, DType::i64)})[0]), (Floats{-2}));
  }
}

TEST_F(OnnxLevels, AnOptionalInputMayComeLater) {
  const std::string tensor = onnx_field(1, onnx_number(1, kOnnxF32));
  const OnnxModel has = model({{onnx_node("OptionalHasElement", {"o"}, {"y"})},
                               {onnx_field(1, "o") + onnx_field(2, onnx_field(9, onnx_field(1, tensor)))},
                               {any_value("y", kOnnxBool)}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(std::get<Tensor>(has.run({OnnxValue()})[0]).item<bool>());
    EXPECT_TRUE(std::get<Tensor>(has.run({OnnxValue(floats({1}))})[0]).item<bool>());
  }
  EXPECT_THROW(has.run({OnnxValue(zeros({1}, DType::f64))}), Error);
}

TEST_F(OnnxLevels, AQuantizationForChannelsFitsEachRank) {
  const OnnxModel pair =
      model({{onnx_node("QuantizeLinear", {"x", "s", "z"}, {"q"}), onnx_node("DequantizeLinear", {"q", "s", "z"}, {"y"})},
             {any_value("x")},
             {any_value("y")},
             {onnx_tensor<float>("s", {2}, {0.5f, 1}), onnx_tensor<uint8_t>("z", {2}, {10, 20})}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(of(pair({reshape(floats({0.6f, 0.6f}), {1, 2})})[0]), (Floats{0.5f, 1}));
    EXPECT_EQ(of(pair({reshape(floats({0.6f, 1.6f, 0.6f, 1.4f}), {1, 2, 2})})[0]), (Floats{0.5f, 1.5f, 1, 1}));
  }
}

TEST_F(OnnxLevels, ResultsHaveMemoryOfTheirOwn) {
  const OnnxModel views = model({{onnx_node("Reshape", {"x", "s"}, {"y"}), onnx_node("Identity", {"w"}, {"z"})},
                                 {any_value("x")},
                                 {any_value("y"), any_value("z"), any_value("w")},
                                 {onnx_tensor<int64_t>("s", {2}, {2, 1}), onnx_tensor<float>("w", {1}, {5})}});
  const Tensor x = floats({1, 2});
  for (int i = 0; i < 3; ++i) {
    std::vector<Tensor> found = views({x});
    for (Tensor& each : found) each.fill_(9);
    EXPECT_EQ(of(x), (Floats{1, 2}));
  }
  EXPECT_EQ(of(views({x})[1]), (Floats{5}));
}

TEST_F(OnnxLevels, AxesOfOldBroadcastsAreRead) {
  const OnnxModel sum = of_node(onnx_node("Add", {"x", "b"}, {"y"}, {onnx_int("broadcast", 1), onnx_int("axis", 0)}),
                                kOnnxF32, {onnx_tensor<float>("b", {2}, {10, 20})}, 6);
  EXPECT_EQ(of(sum({zeros({2, 2})})[0]), (Floats{10, 10, 20, 20}));
}

TEST_F(OnnxLevels, ALoopWithoutRoundsHasEmptyScans) {
  const std::string body =
      onnx_graph({{onnx_node("Identity", {"on"}, {"again"}), onnx_node("Neg", {"sum"}, {"part"})},
                  {any_value("i", kOnnxI64), any_value("on", kOnnxBool), any_value("sum")},
                  {any_value("again", kOnnxBool), any_value("sum"), onnx_value("part", kOnnxF32, {"3"})}});
  const OnnxModel loop =
      model({{onnx_node("Loop", {"rounds", "", "x"}, {"y", "parts"}, {onnx_graph_attribute("body", body)})},
             {any_value("x")},
             {any_value("y"), any_value("parts")},
             {onnx_tensor<int64_t>("rounds", {}, {0})}});
  EXPECT_EQ(loop({floats({1, 2, 3})})[1].shape(), (Shape{0, 3}));
}

TEST_F(OnnxLevels, ValuesAtTheEdges) {
  const float infinity = std::numeric_limits<float>::infinity();
  const OnnxModel sums = of_node(onnx_node("CumSum", {"x", "a"}, {"y"}, {onnx_int("exclusive", 1)}), kOnnxF32,
                                 {onnx_tensor<int64_t>("a", {}, {0})});
  EXPECT_EQ(of(sums({floats({1, infinity, 3})})[0]), (Floats{0, 1, infinity}));
  const OnnxModel roots = of_node(onnx_node("Pow", {"x", "e"}, {"y"}), kOnnxI32, {onnx_tensor<float>("e", {}, {0.5f})});
  EXPECT_EQ(roots({Tensor::from<int32_t>({3, 9, 8}, {3})})[0].to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 2}));
  const OnnxModel back = of_node(
      onnx_node("Slice", {"x", "b", "b", "a", "s"}, {"y"}), kOnnxF32,
      {onnx_tensor<int64_t>("b", {1}, {-9}), onnx_tensor<int64_t>("a", {1}, {0}), onnx_tensor<int64_t>("s", {1}, {-1})});
  EXPECT_EQ(of(back({floats({1, 2, 3})})[0]), (Floats{1}));
  const OnnxModel resized =
      of_node(onnx_node("Resize", {"x", "", "s"}, {"y"}), kOnnxF32, {onnx_tensor<float>("s", {1}, {0.7f})});
  EXPECT_EQ(of(resized({arange(0, 10)})[0]), (Floats{0, 2, 3, 4, 6, 7, 9}));
  const OnnxModel most = of_node(onnx_node("ReduceMax", {"x"}, {"y"}), kOnnxI32, {});
  EXPECT_EQ(most({zeros({0}, DType::i32)})[0].to_vector<int32_t>(),
            (std::vector<int32_t>{std::numeric_limits<int32_t>::min()}));
}

TEST_F(OnnxLevels, SizesThatDoNotFitAreErrors) {
  const int64_t huge = int64_t{1} << 62;
  const auto number = [](const std::string& name, int64_t value) { return onnx_tensor<int64_t>(name, {}, {value}); };
  const auto f = [](const std::string& name, const Shape& shape) {
    return onnx_tensor<float>(name, {shape.begin(), shape.end()}, Floats(static_cast<size_t>(shape.count()), 1));
  };
  struct Row {
    std::string node;
    std::vector<std::string> constants;
    Shape x;
  };
  const Row rows[] = {
      {onnx_node("DepthToSpace", {"x"}, {"y"}, {onnx_int("blocksize", 0)}), {}, {1, 4, 2, 2}},
      {onnx_node("DepthToSpace", {"x"}, {"y"}, {onnx_int("blocksize", int64_t{1} << 32)}), {}, {1, 4, 2, 2}},
      {onnx_node("SpaceToDepth", {"x"}, {"y"}, {onnx_int("blocksize", 0)}), {}, {1, 4, 2, 2}},
      {onnx_node("Conv", {"x", "w"}, {"y"}, {onnx_ints("strides", {0, 0}), onnx_text("auto_pad", "SAME_UPPER")}),
       {f("w", {1, 1, 2, 2})},
       {1, 1, 4, 4}},
      {onnx_node("Conv", {"x", "w"}, {"y"}), {f("w", {1})}, {1, 1, 4, 4}},
      {onnx_node("ConvTranspose", {"x", "w"}, {"y"}, {onnx_ints("output_padding", {1})}),
       {f("w", {1, 1, 2, 2})},
       {1, 1, 4, 4}},
      {onnx_node("MaxPool", {"x"}, {"y"},
                 {onnx_ints("kernel_shape", {2, 2}), onnx_ints("strides", {0, 0}), onnx_int("ceil_mode", 1)}),
       {},
       {1, 1, 4, 4}},
      {onnx_node("GroupNormalization", {"x", "s", "s"}, {"y"}, {onnx_int("num_groups", 0)}), {f("s", {3})}, {1, 2, 4}},
      {onnx_node("LRN", {"x"}, {"y"}, {onnx_int("size", 0)}), {}, {1, 2, 4, 4}},
      {onnx_node("GatherND", {"x", "i"}, {"y"}, {onnx_int("batch_dims", 2147483647)}),
       {onnx_tensor<int64_t>("i", {1, 1}, {0})},
       {2, 2}},
      {onnx_node("GatherND", {"x", "i"}, {"y"}, {onnx_int("batch_dims", -1)}),
       {onnx_tensor<int64_t>("i", {1, 1}, {0})},
       {2, 2}},
      {onnx_node("MelWeightMatrix", {"b", "l", "r", "x", "x"}, {"y"}),
       {number("b", 8), number("l", huge), number("r", 8000)},
       {}},
      {onnx_node("HannWindow", {"n"}, {"y"}), {number("n", huge)}, {1}},
      {onnx_node("DFT", {"x", "n"}, {"y"}), {number("n", huge)}, {1, 4, 1}},
      {onnx_node("Pad", {"x", "p"}, {"y"}, {onnx_text("mode", "edge")}), {onnx_tensor<int64_t>("p", {2}, {huge, 0})}, {4}},
      {onnx_node("Resize", {"x", "", "", "n"}, {"y"}, {onnx_text("mode", "linear")}),
       {onnx_tensor<int64_t>("n", {1}, {huge})},
       {4}},
      {onnx_node("Split", {"x"}, {"y"}, {onnx_int("num_outputs", 1000000000)}), {}, {4}},
      {onnx_node("MatMulNBits", {"x", "b", "s"}, {"y"},
                 {onnx_int("K", int64_t{1} << 35), onnx_int("N", int64_t{1} << 33), onnx_int("block_size", 16)},
                 "com.microsoft"),
       {onnx_tensor<uint8_t>("b", {1}, {0}), f("s", {1})},
       {1, 4}},
      {onnx_node("GroupQueryAttention", {"x", "", "", "", "", "n", "n"}, {"y"},
                 {onnx_int("num_heads", 2), onnx_int("kv_num_heads", -1)}, "com.microsoft"),
       {onnx_tensor<int32_t>("n", {1}, {1})},
       {1, 1, 8}},
      {onnx_node("FoldedWeight", {"x", "x", "x"}, {"y"}, {}, "plugrad"), {}, {1}},
      {onnx_node("Gelu", {"x"}, {"y"}, {onnx_int("unknown", 3)}, "com.microsoft"), {}, {1}},
  };
  for (const Row& row : rows) {
    try {
      of_node(row.node, kOnnxF32, row.constants)({ones(row.x)});
      ADD_FAILURE() << "no error: " << row.node;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(" node"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace plugrad::test
