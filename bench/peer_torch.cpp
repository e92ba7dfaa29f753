// Benchmarks libtorch with the rows of rows.hpp.
#include <bench/rows.hpp>

#include <torch/torch.h>

namespace {

using plugrad_bench::kBatch;
using plugrad_bench::kLayers;

struct Torch {
  using Tensor = torch::Tensor;

  Tensor uniform(at::IntArrayRef shape, double low, double high) const { return torch::rand(shape) * (high - low) + low; }
  Tensor leaf(Tensor x) const { return x.requires_grad_(true); }
  void clear_grad(Tensor& x) const { x.mutable_grad() = Tensor(); }
  void backward(const Tensor& y) const { y.backward(); }
  Tensor add(const Tensor& a, const Tensor& b) const { return a + b; }
  Tensor mul(const Tensor& a, const Tensor& b) const { return a * b; }
  Tensor relu(const Tensor& x) const { return torch::relu(x); }
  Tensor exp(const Tensor& x) const { return torch::exp(x); }
  Tensor tanh(const Tensor& x) const { return torch::tanh(x); }
  Tensor pow(const Tensor& x, double exponent) const { return torch::pow(x, exponent); }
  Tensor sum(const Tensor& x) const { return x.sum(); }
  Tensor transpose(const Tensor& x) const { return x.t(); }
  Tensor matmul(const Tensor& a, const Tensor& b) const { return torch::matmul(a, b); }
  std::function<void()> training_step(bool adam) const;
};

std::function<void()> Torch::training_step(bool adam) const {
  torch::nn::Sequential network;
  for (size_t i = 0; i + 1 < std::size(kLayers); ++i) {
    if (i) network->push_back(torch::nn::ReLU());
    network->push_back(torch::nn::Linear(kLayers[i], kLayers[i + 1]));
  }
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  if (adam) optimizer = std::make_shared<torch::optim::Adam>(network->parameters(), torch::optim::AdamOptions(1e-3));
  else optimizer = std::make_shared<torch::optim::SGD>(network->parameters(), torch::optim::SGDOptions(1e-2));
  const Tensor images = uniform({kBatch, kLayers[0]}, 0, 1);
  const Tensor targets = torch::arange(kBatch, torch::kLong) % kLayers[std::size(kLayers) - 1];
  return [=]() mutable {
    optimizer->zero_grad();
    torch::nn::functional::cross_entropy(network->forward(images), targets).backward();
    optimizer->step();
  };
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext(
      "libtorch", TORCH_VERSION ", " + std::to_string(at::get_num_threads()) + " threads, " + at::get_cpu_capability());
  plugrad_bench::Rows<Torch>::add("torch", {}, {});
  benchmark::RunSpecifiedBenchmarks();
}
