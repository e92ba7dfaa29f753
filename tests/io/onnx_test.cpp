#include <plugrad/io/onnx.hpp>

#include <plugrad/io/saved_model.hpp>

#include <tests/io/onnx_bytes.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <filesystem>

namespace plugrad::test {
namespace {
using io::load_onnx;
using io::OnnxModel;
using Floats = std::vector<float>;

class Onnx : public ::testing::Test {
 protected:
  OnnxModel model(const std::string& bytes, io::OnnxOptions options = {}) {
    return load_onnx(scratch_.write("model.onnx", bytes), options);
  }
  // Calls three times, op by op, recorded and replayed, and expects the same bits.
  static std::vector<Tensor> thrice(const OnnxModel& model, const std::vector<Tensor>& inputs) {
    const std::vector<Tensor> first = model(inputs);
    for (int i = 0; i < 2; ++i) {
      const std::vector<Tensor> again = model(inputs);
      for (size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(equal(first[k], again.at(k)));
    }
    return first;
  }
  Scratch scratch_;
};

// relu(x w + b), for x (batch, 2).
std::string dense_model(const std::string& weight) {
  return onnx_model(
      {{onnx_node("MatMul", {"x", "w"}, {"xw"}), onnx_node("Add", {"xw", "b"}, {"sum"}), onnx_node("Relu", {"sum"}, {"y"})},
       {onnx_value("x", kOnnxF32, {"batch", "2"})},
       {onnx_value("y", kOnnxF32, {"batch", "3"})},
       {weight, onnx_tensor<float>("b", {3}, {1, 0, -1})}});
}
std::string dense_model() { return dense_model(onnx_tensor<float>("w", {2, 3}, {1, 2, 3, 4, 5, 6})); }

TEST_F(Onnx, RunsAndReplaysForEachShape) {
  const OnnxModel dense = model(dense_model());
  EXPECT_EQ(dense.inputs().at(0).text(), "x: float32 (batch, 2)");
  const Tensor y = thrice(dense, {Tensor::from<float>({1, -1, 0, 1}, {2, 2})})[0];
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 0, 5, 5, 5}));
  EXPECT_EQ(thrice(dense, {Tensor::from<float>({1, 1}, {1, 2})})[0].to_vector<float>(), (Floats{6, 7, 8}));
  expect_mentions(dense.explain(), "2 calls recorded");
}

TEST_F(Onnx, InputsThatDoNotFitAreNamed) {
  expect_mentions(error_of([&] { model(dense_model(), {.lanes = 0}); }, Code::invalid), "0 lanes");
  const OnnxModel dense = model(dense_model());
  expect_mentions(error_of([&] { dense({}); }, Code::invalid), "1 inputs are expected, not 0: \"x\"");
  expect_mentions(error_of([&] { dense({zeros({1, 3})}); }, Code::invalid),
                  "input x: float32 (batch, 2) is expected, not f32 (1, 3)");
  expect_mentions(error_of([&] { dense({zeros({1, 2}, DType::i64)}); }, Code::invalid), "not i64 (1, 2)");
  expect_mentions(error_of([&] { dense.run(std::map<std::string, io::OnnxValue>{{"z", zeros({1, 2})}}); }, Code::invalid),
                  "input x: float32 (batch, 2) is not given");
  const OnnxModel two = model(onnx_model({{onnx_node("Concat", {"a", "b"}, {"y"}, {onnx_int("axis", 1)})},
                                          {onnx_value("a", kOnnxF32, {"n", "1"}), onnx_value("b", kOnnxF32, {"n", "1"})},
                                          {onnx_value("y", kOnnxF32, {"n", "2"})}}));
  expect_mentions(error_of([&] { two({zeros({2, 1}), zeros({3, 1})}); }, Code::invalid), "n is 2 in another input");
}

TEST_F(Onnx, ListsAllMissingOperators) {
  const std::string bytes =
      onnx_model({{onnx_node("Frobnicate", {"x"}, {"a"}), onnx_node("Twist", {"a"}, {"y"}, {}, "com.example")},
                  {onnx_value("x", kOnnxF32, {"1"})},
                  {onnx_value("y", kOnnxF32, {"1"})}});
  const std::string message = error_of([&] { model(bytes); }, Code::unsupported);
  expect_mentions(message, "Frobnicate (\"Frobnicate node\"), com.example.Twist (\"Twist node\")");
}

TEST_F(Onnx, NamesTheNodeThatFails) {
  const OnnxModel bad = model(onnx_model({{onnx_node("Reshape", {"x", "s"}, {"y"})},
                                          {onnx_value("x", kOnnxF32, {"n"})},
                                          {onnx_value("y", kOnnxF32, {"4", "2"})},
                                          {onnx_tensor<int64_t>("s", {2}, {4, 2})}}));
  expect_mentions(error_of([&] { bad({zeros({6})}); }, Code::invalid),
                  "node \"Reshape node\" (Reshape of float32 (6,), int64 (2,)): ");
}

TEST_F(Onnx, ShapesDecideBranchesAndLoopsOfARecording) {
  // y = x repeated by a loop over its first extent, if it has more than one row, else x.
  const std::string body =
      onnx_graph({{onnx_node("Add", {"sum", "x"}, {"more"}), onnx_node("Identity", {"on"}, {"again"})},
                  {onnx_value("i", kOnnxI64, {}), onnx_value("on", kOnnxBool, {}), onnx_value("sum", kOnnxF32, {})},
                  {onnx_value("again", kOnnxBool, {}), onnx_value("more", kOnnxF32, {})}});
  const std::string many =
      onnx_graph({{onnx_node("Loop", {"rows", "", "x"}, {"looped"}, {onnx_graph_attribute("body", body)})},
                  {},
                  {onnx_value("looped", kOnnxF32, {})}});
  const std::string one = onnx_graph({{onnx_node("Identity", {"x"}, {"same"})}, {}, {onnx_value("same", kOnnxF32, {})}});
  const OnnxModel looping =
      model(onnx_model({{onnx_node("Shape", {"x"}, {"shape"}), onnx_node("Gather", {"shape", "zero"}, {"rows"}),
                         onnx_node("Greater", {"rows", "unit"}, {"several"}),
                         onnx_node("If", {"several"}, {"y"},
                                   {onnx_graph_attribute("then_branch", many), onnx_graph_attribute("else_branch", one)})},
                        {onnx_value("x", kOnnxF32, {"n"})},
                        {onnx_value("y", kOnnxF32, {"n"})},
                        {onnx_tensor<int64_t>("zero", {}, {0}), onnx_tensor<int64_t>("unit", {}, {1})}}));
  EXPECT_EQ(thrice(looping, {Tensor::from<float>({1, 2}, {2})})[0].to_vector<float>(), (Floats{3, 6}));
  EXPECT_EQ(thrice(looping, {Tensor::from<float>({5}, {1})})[0].to_vector<float>(), (Floats{5}));
  expect_mentions(looping.explain(), "2 calls recorded");
}

TEST_F(Onnx, DataThatDecideBranchesRunOpByOpUnlessTheyAreBound) {
  const auto branch = [](const std::string& op) {
    return onnx_graph({{onnx_node(op, {"x"}, {op})}, {}, {onnx_value(op, kOnnxF32, {})}});
  };
  const std::string bytes = onnx_model(
      {{onnx_node("If", {"on"}, {"y"},
                  {onnx_graph_attribute("then_branch", branch("Neg")), onnx_graph_attribute("else_branch", branch("Abs"))})},
       {onnx_value("x", kOnnxF32, {"2"}), onnx_value("on", kOnnxBool, {})},
       {onnx_value("y", kOnnxF32, {"2"})}});
  const Tensor x = Tensor::from<float>({-1, 2}, {2});
  const OnnxModel free = model(bytes);
  EXPECT_EQ(thrice(free, {x, full({}, true, DType::boolean)})[0].to_vector<float>(), (Floats{1, -2}));
  EXPECT_EQ(thrice(free, {x, full({}, false, DType::boolean)})[0].to_vector<float>(), (Floats{1, 2}));
  expect_mentions(free.explain(), "run op by op: elements that only the run knows are read by If \"If node\"");
  const OnnxModel bound = model(bytes, {.bind = {{"on", full({}, true, DType::boolean)}}});
  EXPECT_EQ(bound.inputs().size(), 1u);
  EXPECT_EQ(thrice(bound, {x})[0].to_vector<float>(), (Floats{1, -2}));
  expect_mentions(bound.explain(), "1 calls recorded");
  expect_mentions(error_of([&] { model(bytes, {.bind = {{"off", x}}}); }, Code::invalid), "has no input \"off\" to bind");
}

TEST_F(Onnx, InlinesFunctionsWithTheirAttributes) {
  const std::string doubled = onnx_function("Doubled", {"a"}, {"b"}, {onnx_node("Add", {"a", "a"}, {"b"})});
  const std::string joined = onnx_function("Joined", {"a", "b"}, {"c"},
                                           {onnx_node("Doubled", {"b"}, {"b2"}, {}, "own"),
                                            onnx_node("Concat", {"a", "b2"}, {"c"}, {onnx_reference("axis", "along")})},
                                           {"along"});
  const auto calls = [&](const std::vector<std::string>& functions) {
    return onnx_model(onnx_graph({{onnx_node("Joined", {"x", "x"}, {"y"}, {onnx_int("along", 1)}, "own")},
                                  {onnx_value("x", kOnnxF32, {"1", "2"})},
                                  {onnx_value("y", kOnnxF32, {"1", "4"})}}),
                      functions);
  };
  EXPECT_EQ(thrice(model(calls({doubled, joined})), {Tensor::from<float>({1, 2}, {1, 2})})[0].to_vector<float>(),
            (Floats{1, 2, 2, 4}));
  const std::string endless =
      onnx_function("Joined", {"a", "b"}, {"c"}, {onnx_node("Joined", {"a", "b"}, {"c"}, {}, "own")});
  expect_mentions(error_of([&] { model(calls({endless})); }, Code::io_error), "functions nest over 64 deep");
}

TEST_F(Onnx, FoldsABatchNormalizationIntoItsConvolution) {
  const auto convolution = [](bool shown) {
    std::vector<std::string> outputs{onnx_value("y", kOnnxF32, {"1", "2", "2", "2"})};
    if (shown) outputs.push_back(onnx_value("c", kOnnxF32, {"1", "2", "2", "2"}));
    return onnx_model(
        {{onnx_node("Conv", {"x", "w"}, {"c"}), onnx_node("BatchNormalization", {"c", "s", "b", "m", "v"}, {"y"})},
         {onnx_value("x", kOnnxF32, {"1", "1", "3", "3"})},
         outputs,
         {onnx_tensor<float>("w", {2, 1, 2, 2}, {1, 2, 3, 4, -1, 0, 1, 2}), onnx_tensor<float>("s", {2}, {2, 3}),
          onnx_tensor<float>("b", {2}, {1, -1}), onnx_tensor<float>("m", {2}, {0.5, 0.25}),
          onnx_tensor<float>("v", {2}, {4, 1})}});
  };
  const Tensor x = reshape(arange(0, 9), {1, 1, 3, 3});
  const Tensor folded = thrice(model(convolution(false)), {x})[0], plain = thrice(model(convolution(true)), {x})[0];
  EXPECT_TRUE(allclose(folded, plain, 1e-5, 1e-5)) << folded << plain;
}

TEST_F(Onnx, IntegerProductsAreExact) {
  constexpr int64_t kRows = 3, kInner = 700, kColumns = 4;
  std::vector<uint8_t> a(kRows * kInner), b(kInner * kColumns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i * 37 + i / 7);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(255 - i * 11 % 256);
  const std::vector<uint8_t> zeros_of_b{0, 3, 128, 255};
  const OnnxModel product =
      model(onnx_model({{onnx_node("MatMulInteger", {"a", "b", "az", "bz"}, {"y"})},
                        {onnx_value("a", kOnnxU8, {"3", "700"})},
                        {onnx_value("y", kOnnxI32, {"3", "4"})},
                        {onnx_tensor("b", {kInner, kColumns}, b), onnx_tensor<uint8_t>("az", {}, {100}),
                         onnx_tensor("bz", {kColumns}, zeros_of_b)}}));
  std::vector<int32_t> expected;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < kInner; ++k)
        sum += (a[static_cast<size_t>(i * kInner + k)] - 100) *
               (b[static_cast<size_t>(k * kColumns + j)] - zeros_of_b[static_cast<size_t>(j)]);
      expected.push_back(sum);
    }
  EXPECT_EQ(thrice(product, {Tensor::from(a, {kRows, kInner})})[0].to_vector<int32_t>(), expected);
}

TEST_F(Onnx, IntegerConvolutionsAreExact) {
  constexpr int64_t kChannels = 70;
  std::vector<uint8_t> x(kChannels * 9), w(kChannels * 9);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(255 - i % 3), w[i] = static_cast<uint8_t>(250 + i % 5);
  const OnnxModel convolution = model(onnx_model({{onnx_node("ConvInteger", {"x", "w"}, {"y"})},
                                                  {onnx_value("x", kOnnxU8, {"1", "70", "3", "3"})},
                                                  {onnx_value("y", kOnnxI32, {"1", "1", "1", "1"})},
                                                  {onnx_tensor("w", {1, kChannels, 3, 3}, w)}}));
  int32_t sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * w[i];
  EXPECT_EQ(thrice(convolution, {Tensor::from(x, {1, kChannels, 3, 3})})[0].to_vector<int32_t>(), std::vector<int32_t>{sum});
}

TEST_F(Onnx, AQuantizationAndItsInverseMakeNoCodes) {
  const auto pair = [](bool shown) {
    std::vector<std::string> outputs{onnx_value("y", kOnnxF32, {"4"})};
    if (shown) outputs.push_back(onnx_value("q", kOnnxU8, {"4"}));
    return onnx_model(
        {{onnx_node("QuantizeLinear", {"x", "s", "z"}, {"q"}), onnx_node("DequantizeLinear", {"q", "s", "z"}, {"y"})},
         {onnx_value("x", kOnnxF32, {"4"})},
         outputs,
         {onnx_tensor<float>("s", {}, {0.3f}), onnx_tensor<uint8_t>("z", {}, {10})}});
  };
  const Tensor x = Tensor::from<float>({-9, 0.44f, 0.46f, 1000}, {4});
  const std::vector<Tensor> shown = thrice(model(pair(true)), {x});
  EXPECT_EQ(shown[1].to_vector<uint8_t>(), (std::vector<uint8_t>{0, 11, 12, 255}));
  EXPECT_TRUE(equal(thrice(model(pair(false)), {x})[0], shown[0]));
}

TEST_F(Onnx, SumsOfCodesAreCodes) {
  const OnnxModel sum =
      model(onnx_model({{onnx_node("QLinearAdd", {"a", "s", "z", "a", "s", "z", "t", "u"}, {"y"}, {}, "com.microsoft")},
                        {onnx_value("a", kOnnxU8, {"3"})},
                        {onnx_value("y", kOnnxU8, {"3"})},
                        {onnx_tensor<float>("s", {}, {0.5f}), onnx_tensor<uint8_t>("z", {}, {100}),
                         onnx_tensor<float>("t", {}, {1}), onnx_tensor<uint8_t>("u", {}, {7})}}));
  EXPECT_EQ(thrice(sum, {Tensor::from<uint8_t>({100, 103, 0}, {3})})[0].to_vector<uint8_t>(),
            (std::vector<uint8_t>{7, 10, 0}));
}

TEST_F(Onnx, UnsignedIntegersWrapAndDivide) {
  const OnnxModel wide = model(onnx_model(
      {{onnx_node("Div", {"a", "b"}, {"q"}), onnx_node("Less", {"a", "b"}, {"less"}),
        onnx_node("Max", {"a", "b"}, {"most"})},
       {onnx_value("a", kOnnxU64, {"4"})},
       {onnx_value("q", kOnnxU64, {"4"}), onnx_value("less", kOnnxBool, {"4"}), onnx_value("most", kOnnxU64, {"4"})},
       {onnx_tensor<uint64_t>("b", {4}, {7, uint64_t{1} << 63, 3, ~uint64_t{0}})}}));
  const std::vector<uint64_t> a{~uint64_t{0}, ~uint64_t{0}, (uint64_t{1} << 63) + 5, 8},
      b{7, uint64_t{1} << 63, 3, ~uint64_t{0}};
  std::vector<int64_t> bits, quotients, most;
  std::vector<uint8_t> less;
  for (size_t i = 0; i < a.size(); ++i) {
    bits.push_back(static_cast<int64_t>(a[i]));
    quotients.push_back(static_cast<int64_t>(a[i] / b[i]));
    most.push_back(static_cast<int64_t>(std::max(a[i], b[i])));
    less.push_back(a[i] < b[i]);
  }
  const std::vector<Tensor> found = thrice(wide, {Tensor::from(bits, {4})});
  EXPECT_EQ(found[0].to_vector<int64_t>(), quotients);
  EXPECT_EQ(found[1].to_vector<uint8_t>(), less);
  EXPECT_EQ(found[2].to_vector<int64_t>(), most);
  const OnnxModel narrow = model(onnx_model(
      {{onnx_node("Add", {"a", "a"}, {"y"})}, {onnx_value("a", kOnnxU16, {"2"})}, {onnx_value("y", kOnnxU16, {"2"})}}));
  EXPECT_EQ(thrice(narrow, {Tensor::from<int32_t>({40000, 3}, {2})})[0].to_vector<int32_t>(),
            (std::vector<int32_t>{14464, 6}));
}

TEST_F(Onnx, WeightsOfFewBitsStayCodes) {
  // Two rows of 32 columns, blocks of 16, codes of 4 bits: element = scale * (code - zero).
  std::vector<uint8_t> codes(2 * 2 * 8);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 29 + 3);
  const Floats scales{0.5, 0.25, 1, 2};
  const std::vector<uint8_t> zero_codes{0x38, 0xa1};
  const OnnxModel product = model(onnx_model(
      {{onnx_node("MatMulNBits", {"x", "b", "s", "z"}, {"y"},
                  {onnx_int("K", 32), onnx_int("N", 2), onnx_int("bits", 4), onnx_int("block_size", 16)}, "com.microsoft")},
       {onnx_value("x", kOnnxF32, {"1", "32"})},
       {onnx_value("y", kOnnxF32, {"1", "2"})},
       {onnx_tensor("b", {2, 2, 8}, codes), onnx_tensor("s", {4}, scales), onnx_tensor("z", {2}, zero_codes)}}));
  const int zero_of[] = {8, 3, 1, 10};
  Floats expected(2);
  for (size_t row = 0; row < 2; ++row)
    for (size_t k = 0; k < 32; ++k) {
      const size_t block = row * 2 + k / 16;
      const int code = codes[row * 16 + k / 2] >> (k % 2 * 4) & 15;
      expected[row] += static_cast<float>(k) * scales[block] * static_cast<float>(code - zero_of[block]);
    }
  EXPECT_EQ(thrice(product, {reshape(arange(0, 32), {1, 32})})[0].to_vector<float>(), expected);
}

TEST_F(Onnx, SequencesAreValuesToo) {
  const OnnxModel split =
      model(onnx_model({{onnx_node("SplitToSequence", {"x"}, {"parts"}), onnx_node("SequenceAt", {"parts", "at"}, {"y"})},
                        {onnx_value("x", kOnnxF32, {"3"})},
                        {onnx_value("y", kOnnxF32, {"1"}), onnx_field(1, "parts")},
                        {onnx_tensor<int64_t>("at", {}, {-1})}}));
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3});
  const std::vector<io::OnnxValue> found = split.run({io::OnnxValue(x)});
  EXPECT_EQ(std::get<Tensor>(found[0]).to_vector<float>(), (Floats{3}));
  EXPECT_EQ(std::get<std::vector<Tensor>>(found[1]).size(), 3u);
  expect_mentions(error_of([&] { split({x}); }, Code::invalid), "an output that is not a tensor");
}

TEST_F(Onnx, SavesAModelForItsShapes) {
  const OnnxModel dense = model(dense_model());
  const Tensor x = Tensor::from<float>({1, -1, 0, 1}, {2, 2});
  dense.save(scratch_.path("dense.plugrad"), {x});
  const SavedModel saved = load_model(scratch_.path("dense.plugrad"));
  EXPECT_TRUE(equal(saved({x})[0], dense({x})[0]));
}

TEST_F(Onnx, ExternalDataStayInTheFolder) {
  const auto external = [&](const std::string& location, const std::string& offset = "4", const std::string& length = "24") {
    return dense_model(onnx_external("w", {2, 3}, location, offset, length));
  };
  const Floats elements{9, 1, 2, 3, 4, 5, 6};
  const std::string data(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float));
  std::filesystem::create_directory(scratch_.path("below"));
  scratch_.write("below/weights", data);
  std::filesystem::create_symlink(scratch_.path("below/weights"), scratch_.path("link"));
  std::filesystem::create_directory_symlink(scratch_.path("below"), scratch_.path("linked"));
  const Tensor x = Tensor::from<float>({1, 1}, {1, 2});
  EXPECT_EQ(model(external("below/weights"))({x})[0].to_vector<float>(), (Floats{6, 7, 8}));
  for (const char* each : {"../weights", "/etc/passwd", "below/../below/weights", "link", "linked/weights", ""}) {
    const OnnxModel bad = model(external(each));
    expect_mentions(io_error_of([&] { bad({x}); }), "a file in the model's folder or below is expected");
  }
  const auto message = [&](const std::string& bytes) {
    const OnnxModel bad = model(bytes);
    return io_error_of([&] { bad({x}); });
  };
  expect_mentions(message(external("below/weights", "8")), "are 24 bytes from byte 8 of");
  expect_mentions(message(external("below/weights", "4", "20")), "of 24 bytes; its external data are 20 bytes");
  expect_mentions(message(external("below/weights", "-4")), "the offset \"-4\": a number is expected");
  expect_mentions(message(external("missing")), "it holds the external data of");
}

TEST_F(Onnx, DamagedFilesAreErrors) {
  const std::string bytes = dense_model();
  for (size_t end = 0; end < bytes.size(); ++end) {
    try {
      model(bytes.substr(0, end))({zeros({1, 2})});
    } catch (const Error&) {
    }
  }
  expect_mentions(io_error_of([&] { model("no protobuf at all"); }), "is not an ONNX file or is damaged");
  expect_mentions(io_error_of([&] { model(""); }), "there is no graph");
  const std::string few = onnx_tensor<float>("w", {2, 3}, {1, 2, 3});
  const OnnxModel short_weight = model(dense_model(few));
  expect_mentions(io_error_of([&] { short_weight({zeros({1, 2})}); }), "24 bytes are expected, not 12");
  const std::string undefined = onnx_model({{onnx_node("Neg", {"z"}, {"y"})}, {}, {onnx_value("y", kOnnxF32, {})}});
  expect_mentions(io_error_of([&] { model(undefined); }), "uses \"z\", which nothing before defines");
}

}  // namespace
}  // namespace plugrad::test
