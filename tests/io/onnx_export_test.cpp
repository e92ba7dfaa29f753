#include <plugrad/io/onnx.hpp>

#include <plugrad/io/saved_model.hpp>

#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

namespace plugrad::test {
namespace {

// A function of two matrices, x and y of (4, 6), that use ops of one kind.
struct ExportRow {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& y)> f;
};

Tensor image(const Tensor& x) { return reshape(x, {1, 2, 3, 4}); }
Tensor as_matrix(const Tensor& x) { return reshape(contiguous(x), {x.size(0), x.count() / x.size(0)}); }

const ExportRow kFunctions[] = {
    {"elementwise",
     [](const Tensor& x, const Tensor& y) { return exp(neg(abs(x))) * tanh(y) - sqrt(abs(y)) / (x * x + 1.5); }},
    {"activations",
     [](const Tensor& x, const Tensor& y) {
       return silu(x) + gelu(y) + gelu(x, Approximation::tanh) + relu(y) + sigmoid(x) + erf(y);
     }},
    {"trigonometry", [](const Tensor& x, const Tensor& y) { return sin(x) + cos(y) + atan(x) + sign(y) + log(abs(x) + 1); }},
    {"extrema",
     [](const Tensor& x, const Tensor& y) { return maximum(x, y) + minimum(x, 0.25) + pow(abs(x), 1.5) + fmod(x, 0.7); }},
    {"comparisons",
     [](const Tensor& x, const Tensor& y) {
       return where(logical_or(lt(x, y), eq(x, 2)), x, y) + cast(ne(x, y), DType::f32) + cast(le(x, 0), DType::f32);
     }},
    {"booleans", [](const Tensor& x, const Tensor& y) { return cast(where(gt(x, 0), gt(x, y), gt(y, 0)), DType::f32); }},
    {"integers",
     [](const Tensor& x, const Tensor& y) {
       const Tensor a = cast(x * 10, DType::i64), b = cast(y * 10, DType::i64) + 40;
       return cast(div(a, b, RoundingMode::trunc) + bitwise_and(a, b) + bitwise_or(a, b) + bitwise_xor(a, 5) + fmod(a, 7),
                   DType::f32);
     }},
    {"bytes",
     [](const Tensor& x, const Tensor& y) {
       const Tensor a = cast(abs(x) * 10, DType::u8), b = cast(y * 10, DType::i64);
       return cast(bitwise_left_shift(a, 2), DType::f32) + cast(bitwise_right_shift(a, 1), DType::f32) +
              cast(eq(a, 3), DType::f32) + cast(bitwise_right_shift(b, 2) + bitwise_left_shift(b, 3), DType::f32);
     }},
    {"reductions",
     [](const Tensor& x, const Tensor& y) {
       return sum(x, {1}, true) + amax(y, {0}, true) + amin(x) + mean(y, {0, 1}) +
              cast(sum(gt(x, 0), {1}, true), DType::f32);
     }},
    {"positions",
     [](const Tensor& x, const Tensor& y) {
       return cast(argmax(x, {1}, true) + argmax(reshape(y, {4, 2, 3}), {0, 2}) + argmin(x), DType::f32);
     }},
    {"products",
     [](const Tensor& x, const Tensor& y) {
       return linear(matmul(x, transpose(y, 0, 1)), slice(transpose(x, 0, 1), 1, 0, 4), select(transpose(y, 0, 1), 1, 0));
     }},
    {"rows",
     [](const Tensor& x, const Tensor& y) {
       return softmax(x, 1) + log_softmax(y, 0) + layer_norm(x, {6}, select(y, 0, 0), select(y, 0, 1)) +
              rms_norm(y, {6}, select(x, 0, 0), 1e-6);
     }},
    {"channels",
     [](const Tensor& x, const Tensor& y) {
       return as_matrix(
           batch_norm(image(x), {}, {}, slice(select(y, 0, 0), 0, 0, 2), slice(select(y, 0, 1), 0, 0, 2), true));
     }},
    {"attention",
     [](const Tensor& x, const Tensor& y) {
       const Tensor q = reshape(x, {1, 2, 4, 3}), k = reshape(y, {1, 2, 4, 3});
       return as_matrix(scaled_dot_product_attention(q, k, k * 2, {}, 0, true) +
                        scaled_dot_product_attention(q, k, q, reshape(slice(x, 1, 0, 4), {1, 1, 4, 4})));
     }},
    {"indexing",
     [](const Tensor& x, const Tensor& y) {
       const Tensor index = cast(abs(y), DType::i64);
       return gather(x, 0, index) + scatter_add(x, 1, index, y) + index_select(y, 1, cast(arange(0, 6), DType::i64) % 3);
     }},
    {"sorting",
     [](const Tensor& x, const Tensor& y) {
       return sort(x, 1, true).values + cast(argsort(y, 0), DType::f32) + topk(x, 6, 1, false).values;
     }},
    {"scans", [](const Tensor& x, const Tensor& y) { return cumsum(x, 1) + flip(cumsum(flip(y, {0}), 0), {0}); }},
    {"convolution",
     [](const Tensor& x, const Tensor& y) {
       const Tensor weight = reshape(slice(reshape(y, {24}), 0, 0, 16), {2, 2, 2, 2}),
                    bias = slice(reshape(y, {24}), 0, 3, 5);
       return as_matrix(conv2d(image(x), weight, bias, {2}, {1})) + sum(conv2d(image(x), weight, {}, {1}, {0}, {2}));
     }},
    {"transposed_convolution",
     [](const Tensor& x, const Tensor& y) {
       const Tensor weight = reshape(y, {2, 3, 2, 2});
       return as_matrix(conv_transpose2d(image(x), weight, {}, {2}, {1}, {1})) +
              sum(conv_transpose2d(image(x), weight, {}, {1}, {0}, {0}, 1, {2}));
     }},
    {"pooling",
     [](const Tensor& x, const Tensor&) {
       const ValuesIndices found = max_pool2d_with_indices(image(x), {2}, {1}, {1}, {1}, true);
       return as_matrix(found.values + cast(found.indices, DType::f32)) + sum(avg_pool2d(image(x), {2}));
     }},
    {"views",
     [](const Tensor& x, const Tensor& y) {
       return as_matrix(permute(reshape(x, {2, 2, 2, 3}), {3, 0, 2, 1})) * 2 + sum(slice(y, 1, 1, 6, 2)) +
              sum(flip(x, {0, 1}) * y) + sum(expand(slice(y, 1, 0, 1), {4, 6}) * x) + sum(diagonal(x));
     }},
    {"assembly",
     [](const Tensor& x, const Tensor& y) {
       return slice_scatter(cat({x, y * 2}, 0), sin(x), 0, 2, 6) + sum(pad(stack({x, y}, 0), {1, 1, 2, 0}) * 3);
     }},
    {"constants",
     [](const Tensor& x, const Tensor&) { return x + arange(0, 3, 0.5) + full({4, 1}, 2.5) + tril(ones({4, 6})); }},
};

class OnnxExport : public ::testing::TestWithParam<ExportRow> {};

TEST_P(OnnxExport, GivesTheFunctionsResults) {
  const Scratch scratch;
  const NoGrad unrecorded;
  std::vector<float> a, b;
  for (int i = 0; i < 24; ++i)
    a.push_back(static_cast<float>((i * 7 % 24) - 11) / 6), b.push_back(static_cast<float>((i * 11 % 24) - 9) / 7);
  const Tensor x = Tensor::from(a, {4, 6}), y = Tensor::from(b, {4, 6});
  auto step = compile(GetParam().f);
  const Tensor expected = step(x, y);
  step(x, y);
  save_model(step, scratch.path("model.onnx"));
  const io::OnnxModel model = io::load_onnx(scratch.path("model.onnx"));
  EXPECT_EQ(model.inputs().at(1).text(), "input1: float32 (4, 6)");
  const Tensor found = model({x, y})[0];
  EXPECT_TRUE(allclose(found, expected, 1e-5, 1e-5)) << found << expected;
  save_model(step, scratch.path("model.plugrad"));
  io::export_onnx(scratch.path("model.plugrad"), scratch.path("again.onnx"));
  EXPECT_EQ(read_file(scratch.path("again.onnx")), read_file(scratch.path("model.onnx")));
}
INSTANTIATE_TEST_SUITE_P(Functions, OnnxExport, ::testing::ValuesIn(kFunctions),
                         [](const auto& each) { return each.param.name; });

TEST(OnnxExportOf, WeightsOfFewBitsAreWidened) {
  const Scratch scratch;
  const NoGrad unrecorded;
  const Quantized weight = quantize(reshape(sin(arange(0, 96)), {3, 32}), 4, 32);
  auto step = compile([&](const Tensor& x) { return quantized_matmul(x, weight.codes, weight.scales); });
  const Tensor x = reshape(cos(arange(0, 64)), {2, 32});
  const Tensor expected = step(x);
  step(x);
  save_model(step, scratch.path("model.onnx"));
  EXPECT_TRUE(allclose(io::load_onnx(scratch.path("model.onnx"))({x})[0], expected, 1e-5, 1e-5));
}

TEST(OnnxExportOf, OpsWithoutACounterpartAreNamed) {
  const Scratch scratch;
  const NoGrad unrecorded;
  const Quantized weight = quantize(reshape(sin(arange(0, 96)), {3, 32}), 4, 32);
  const Tensor scales = weight.scales;
  auto step = compile([&](const Tensor& x, const Tensor& codes) { return quantized_matmul(x, codes, scales); });
  const Tensor x = zeros({2, 32});
  step(x, weight.codes);
  step(x, weight.codes);
  try {
    save_model(step, scratch.path("model.onnx"));
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    expect_mentions(error.what(), "call 0, quantized_matmul: codes that are not weights of the model are not supported");
  }
  EXPECT_TRUE(scratch.names().empty());
}

}  // namespace
}  // namespace plugrad::test
