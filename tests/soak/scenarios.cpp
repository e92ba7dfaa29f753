#include <tests/soak/scenarios.hpp>

#include <plugrad/io/safetensors.hpp>
#include <plugrad/plugrad.hpp>
#include <tests/io/scratch.hpp>

namespace plugrad::test {
namespace {

// Numbers between -scale and scale that do not come from a generator, so that each run has the same numbers.
Tensor numbers(const Shape& shape, Device device, double scale = 1) {
  const Tensor count = arange(0, shape.count(), 1, DType::f32, device);
  return reshape(mul(sub(remainder(count, 97), 48), scale / 48), shape);
}

double learns(Device device, int64_t side) {
  nn::Linear layer(side, side);
  layer.to(device);
  {
    const NoGrad unrecorded;
    layer.weight.copy_(numbers({side, side}, device, 0.05));
    layer.bias.copy_(numbers({side}, device));
  }
  nn::AdamW optimizer(layer.parameters(), 1e-3);
  const Tensor x = numbers({3, side}, device), y = arange(0, 3, 1, DType::i64, device);
  double loss = 0;
  for (int step = 0; step < 2; ++step) {
    const Tensor error = cross_entropy(relu(layer(x)), y);
    optimizer.zero_grad();
    error.backward();
    optimizer.step();
    loss = error.item<double>();
  }
  return loss;
}

double convolves(Device device, int64_t side) {
  const Tensor image = numbers({1, 1, side, side}, device).requires_grad_();
  const Tensor weight = numbers({1, 1, 3, 3}, device).requires_grad_();
  const Tensor pooled = max_pool2d(relu(conv2d(image, weight)), {2});
  mean(mul(pooled, pooled)).backward();
  return add(sum(image.grad()), sum(weight.grad())).item<double>();
}

double attends(Device device, int64_t side) {
  const Tensor query = numbers({side, 8}, device).requires_grad_(), key = numbers({side, 8}, device, 0.5).requires_grad_();
  const Tensor weights = softmax(matmul(query, transpose(key)), -1);
  const Tensor y = matmul(weights, query);
  sum(mul(y, y)).backward();
  return add(sum(query.grad()), sum(key.grad())).item<double>();
}

double arranges(Device device, int64_t side) {
  const Tensor x = numbers({side, side}, device).requires_grad_();
  const Tensor joined = cat({x, contiguous(transpose(x))}, 0);
  const Tensor index = remainder(arange(0, side * side, 1, DType::i64, device), side);
  const Tensor picked = gather(joined, 0, reshape(index, {side, side}));
  const Tensor chosen = where(gt(picked, 0), cumsum(picked, 1), picked);
  sum(slice(chosen, 1, 0, side, 3)).backward();
  return add(sum(chosen), sum(mul(x.grad(), x))).item<double>();
}

double exchanges(Device device, int64_t side) {
  static const Scratch scratch;  // static: its destructor allocates, which may fail in the tests of host memory
  static const std::string path = scratch.path("tensors.safetensors");
  io::write_safetensors(path, {{"a", numbers({side, side}, device)}, {"b", numbers({2, side}, device, 2)}});
  const io::Safetensors read = io::read_safetensors(path, device);
  const std::vector<float> values = read.tensors.at("a").to_vector<float>();
  const Tensor back = Tensor::from(values, {side, side}, device);
  return add(sum(back), sum(read.tensors.at("b"))).item<double>();
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = {
      {"learns", learns}, {"convolves", convolves}, {"attends", attends}, {"arranges", arranges}, {"exchanges", exchanges}};
  return all;
}

}  // namespace plugrad::test
