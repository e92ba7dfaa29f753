#include <tests/fuzz/target.hpp>
#include <tests/io/onnx_bytes.hpp>

#include <plugrad/io/onnx.hpp>
#include <plugrad/plugrad.hpp>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  const std::string x = onnx_value("x", kOnnxF32, {"n", "2"}), y = onnx_value("y", kOnnxF32, {"n", "2"});
  const std::string w = onnx_tensor<float>("w", {2, 2}, {1, 2, 3, 4});
  const auto branch = [](const std::string& op) {
    return onnx_graph({{onnx_node(op, {"x"}, {op})}, {}, {onnx_value(op, kOnnxF32, {})}});
  };
  const std::string both =
      onnx_node("If", {"on"}, {"y"},
                {onnx_graph_attribute("then_branch", branch("Neg")), onnx_graph_attribute("else_branch", branch("Abs"))});
  const std::string function = onnx_function(
      "Twice", {"a"}, {"b"}, {onnx_node("Concat", {"a", "a"}, {"b"}, {onnx_reference("axis", "along")})}, {"along"});
  const std::string call = onnx_node("Twice", {"x"}, {"y"}, {onnx_int("along", 0)}, "own");
  return {
      onnx_model({{onnx_node("MatMul", {"x", "w"}, {"z"}), onnx_node("Softmax", {"z"}, {"y"}, {onnx_int("axis", -1)})},
                  {x},
                  {y},
                  {w}}),
      onnx_model({{both}, {x}, {y}, {onnx_tensor<uint8_t>("on", {}, {1})}}),
      onnx_model(onnx_graph({{call}, {x}, {y}}), {function}),
      onnx_model({{onnx_node("Shape", {"x"}, {"s"}), onnx_node("Reshape", {"x", "s"}, {"z"}),
                   onnx_node("Transpose", {"z"}, {"y"}, {onnx_ints("perm", {1, 0})})},
                  {x},
                  {y}}),
      onnx_model({{onnx_node("QuantizeLinear", {"x", "s", "z"}, {"q"}), onnx_node("MatMulInteger", {"q", "b", "z"}, {"p"}),
                   onnx_node("Cast", {"p"}, {"y"}, {onnx_int("to", 1)})},
                  {x},
                  {y},
                  {onnx_tensor<float>("s", {}, {0.5}), onnx_tensor<uint8_t>("z", {}, {3}),
                   onnx_tensor<int8_t>("b", {2, 2}, {1, -2, 3, 4})}}),
  };
}

void fuzz_repair(std::string&, int64_t) {}

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [](const std::string& path) {
    const Device host("reference");
    const io::OnnxModel model = io::load_onnx(path, {.device = host});
    for (const auto& each : model.inputs()) each.text();
    if (model.inputs().size() != 1) return;
    const Tensor x = zeros({3, 2}, DType::f32, host);
    for (int i = 0; i < 2; ++i) model.run({io::OnnxValue(x)});
  });
}
