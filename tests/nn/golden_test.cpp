// Compares modules with PyTorch's: tests/fixtures/modules.json has the results and gradients that write_golden.py wrote.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

namespace plugrad {
namespace {

using Json = nlohmann::json;
using Inputs = std::vector<Tensor>;

// The module of a case, and the function that calls it.
struct Case {
  std::shared_ptr<nn::Module> module;
  std::function<Tensor(const Inputs& inputs)> call;
};

template <class M> Case called(M made) {
  const auto module = std::make_shared<M>(std::move(made));
  return {module, [module](const Inputs& in) { return (*module)(in[0]); }};
}

// The output and the last states in one vector.
template <class M> Case recurrent(M made) {
  const auto module = std::make_shared<M>(std::move(made));
  return {module, [module](const Inputs& in) {
            const nn::Recurrence r = module->run(in[0], in.size() > 1 ? in[1] : Tensor(), in.size() > 2 ? in[2] : Tensor());
            std::vector<Tensor> all{ravel(r.output), ravel(r.h)};
            if (r.c.defined()) all.push_back(ravel(r.c));
            return cat(all);
          }};
}

Case multihead() {
  const auto module = std::make_shared<nn::MultiheadAttention>(
      6, 2, nn::MultiheadAttentionOptions{.kdim = 5, .vdim = 3, .dtype = DType::f64});
  return {module, [module](const Inputs& in) {
            const Tensor padding = Tensor::from<bool>({false, false, false, false, false, false, false, true}, {2, 4});
            const nn::Attention a = module->attend(in[0], in[1], in[2], {.key_padding_mask = padding});
            return cat({ravel(a.output), ravel(a.weights)});
          }};
}

Case self_attention() {
  const auto module = std::make_shared<nn::MultiheadAttention>(
      6, 3, nn::MultiheadAttentionOptions{.batch_first = true, .dtype = DType::f64});
  return {module, [module](const Inputs& in) {
            return module->attend(in[0], in[0], in[0], {.need_weights = false, .is_causal = true}).output;
          }};
}

nn::TransformerEncoderLayerOptions encoder(bool norm_first) {
  nn::TransformerEncoderLayerOptions options{.dim_feedforward = 8, .dropout = 0, .dtype = DType::f64};
  if (norm_first) {
    options.norm_first = options.batch_first = true;
    options.activation = [](const Tensor& x) { return gelu(x); };
  }
  return options;
}

Case made(const std::string& name) {
  constexpr DType f64 = DType::f64;
  static const std::map<std::string, std::function<Case()>> cases = {
      {"linear", [] { return called(nn::Linear(4, 3, true, f64)); }},
      {"embedding", [] { return called(nn::Embedding(5, 3, {.padding_idx = -1, .dtype = f64})); }},
      {"conv1d", [] { return called(nn::Conv1d(4, 6, {3}, {.padding = {2}, .dilation = {2}, .dtype = f64})); }},
      {"conv2d",
       [] {
         return called(nn::Conv2d(4, 6, {3, 2}, {.stride = {2}, .padding = {1}, .groups = 2, .bias = false, .dtype = f64}));
       }},
      {"conv_transpose2d",
       [] {
         return called(nn::ConvTranspose2d(
             4, 6, {3}, {.stride = {2}, .padding = {1}, .groups = 2, .output_padding = {1}, .dtype = f64}));
       }},
      {"prelu", [] { return called(nn::PReLU(4, 0.25, f64)); }},
      {"layer_norm", [] { return called(nn::LayerNorm({6, 5}, {.dtype = f64})); }},
      {"rms_norm", [] { return called(nn::RMSNorm({5}, {.eps = 1e-5, .dtype = f64})); }},
      {"group_norm", [] { return called(nn::GroupNorm(2, 4, {.dtype = f64})); }},
      {"batch_norm1d", [] { return called(nn::BatchNorm1d(4, {.dtype = f64})); }},
      {"batch_norm2d", [] { return called(nn::BatchNorm2d(4, {.momentum = std::nullopt, .dtype = f64})); }},
      {"batch_norm2d_eval", [] { return called(nn::BatchNorm2d(4, {.dtype = f64})); }},
      {"rnn", [] { return recurrent(nn::RNN(3, 4, {.dtype = f64}, nn::RNN::Activation::relu)); }},
      {"gru", [] { return recurrent(nn::GRU(3, 4, {.num_layers = 2, .bidirectional = true, .dtype = f64})); }},
      {"lstm", [] { return recurrent(nn::LSTM(3, 4, {.num_layers = 2, .batch_first = true, .dtype = f64})); }},
      {"lstm_unbatched", [] { return recurrent(nn::LSTM(3, 4, {.bias = false, .bidirectional = true, .dtype = f64})); }},
      {"multihead_attention", multihead},
      {"self_attention", self_attention},
      {"encoder_layer", [] { return called(nn::TransformerEncoderLayer(6, 2, encoder(false))); }},
      {"encoder_layer_norm_first", [] { return called(nn::TransformerEncoderLayer(6, 2, encoder(true))); }}};
  return cases.at(name)();
}

Tensor unpacked(const Json& json, bool integers = false) {
  const Shape shape(json["shape"].get<std::vector<int64_t>>());
  if (integers) return Tensor::from(json["data"].get<std::vector<int64_t>>(), shape);
  return Tensor::from(json["data"].get<std::vector<double>>(), shape);
}

void load_state(nn::Module& module, const Json& state) {
  std::vector<nn::NamedTensor> all;
  for (const auto& [name, value] : state.items()) all.push_back({name, unpacked(value)});
  module.load_state_dict(all);
}

void expect_equal(const Tensor& x, const Json& json, const std::string& what) {
  ASSERT_TRUE(x.defined()) << what;
  EXPECT_TRUE(test::close(cast(x, DType::f64), Shape(json["shape"].get<std::vector<int64_t>>()),
                          json["data"].get<std::vector<double>>(), 2e-8))
      << what;
}

void expect_case(const std::string& name, const Json& json) {
  SCOPED_TRACE(name);
  const Case each = made(name);
  load_state(*each.module, json["state"]);
  each.module->train(json["training"].get<bool>());
  Inputs inputs;
  const bool indices = json["input_grads"].empty();
  for (const Json& input : json["inputs"]) {
    inputs.push_back(unpacked(input, indices));
    if (!indices) inputs.back().requires_grad_();
  }
  const Tensor out = each.call(inputs);
  expect_equal(out, json["out"], "the result");
  out.backward(reshape(cos(arange(0, out.count(), 1, DType::f64)), out.shape()));
  for (size_t i = 0; i < json["input_grads"].size(); ++i)
    expect_equal(inputs[i].grad(), json["input_grads"][i], "the gradient of input " + std::to_string(i));
  EXPECT_EQ(each.module->named_parameters().size(), json["grads"].size());
  for (const nn::NamedTensor& parameter : each.module->named_parameters())
    expect_equal(parameter.tensor.grad(), json["grads"][parameter.name], "the gradient of " + parameter.name);
  EXPECT_EQ(each.module->named_buffers().size(), json["buffers"].size());
  for (const nn::NamedTensor& buffer : each.module->named_buffers())
    expect_equal(buffer.tensor, json["buffers"][buffer.name], buffer.name);
}

TEST(Modules, ReturnWhatPyTorchsReturn) {
  std::ifstream file(PLUGRAD_MODULES);
  const Json golden = Json::parse(file);
  EXPECT_EQ(golden["cases"].size(), 20u);
  for (const auto& [name, json] : golden["cases"].items()) expect_case(name, json);
}

}  // namespace
}  // namespace plugrad
