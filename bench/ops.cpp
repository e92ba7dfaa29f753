// Benchmarks plugrad with built plugin files: cpu, and reference for the small sizes.
#include <bench/rows.hpp>
#include <plugrad/plugrad.hpp>

#include <iostream>

namespace {

using plugrad_bench::kBatch;
using plugrad_bench::kLayers;
using plugrad_bench::Limits;
using plugrad_bench::Rows;

struct Plugrad {
  using Tensor = plugrad::Tensor;
  plugrad::Device device;

  Tensor uniform(const plugrad::Shape& shape, double low, double high) const {
    return plugrad::rand(shape, plugrad::DType::f32, device, low, high);
  }
  Tensor leaf(Tensor x) const { return x.requires_grad_(); }
  void clear_grad(Tensor& x) const { x.clear_grad(); }
  void backward(const Tensor& y) const { y.backward(); }
  Tensor add(const Tensor& a, const Tensor& b) const { return plugrad::add(a, b); }
  Tensor mul(const Tensor& a, const Tensor& b) const { return plugrad::mul(a, b); }
  Tensor relu(const Tensor& x) const { return plugrad::relu(x); }
  Tensor exp(const Tensor& x) const { return plugrad::exp(x); }
  Tensor tanh(const Tensor& x) const { return plugrad::tanh(x); }
  Tensor pow(const Tensor& x, double exponent) const { return plugrad::pow(x, exponent); }
  Tensor sum(const Tensor& x) const { return plugrad::sum(x); }
  Tensor transpose(const Tensor& x) const { return plugrad::transpose(x); }
  Tensor matmul(const Tensor& a, const Tensor& b) const { return plugrad::matmul(a, b); }
  std::function<void()> training_step(bool adam) const;
};

std::shared_ptr<plugrad::nn::Sequential> make_network(plugrad::Device device) {
  std::vector<std::shared_ptr<plugrad::nn::Module>> modules;
  for (size_t i = 0; i + 1 < std::size(kLayers); ++i) {
    if (i) modules.push_back(std::make_shared<plugrad::nn::ReLU>());
    modules.push_back(std::make_shared<plugrad::nn::Linear>(kLayers[i], kLayers[i + 1], true, plugrad::DType::f32, device));
  }
  return std::make_shared<plugrad::nn::Sequential>(std::move(modules));
}

std::function<void()> Plugrad::training_step(bool adam) const {
  const auto network = make_network(device);
  std::shared_ptr<plugrad::nn::Optimizer> optimizer;
  if (adam) optimizer = std::make_shared<plugrad::nn::Adam>(network->parameters(), 1e-3);
  else optimizer = std::make_shared<plugrad::nn::SGD>(network->parameters(), 1e-2);
  const Tensor images = uniform({kBatch, kLayers[0]}, 0, 1);
  std::vector<int64_t> classes(kBatch);
  for (int64_t i = 0; i < kBatch; ++i) classes[static_cast<size_t>(i)] = i % kLayers[std::size(kLayers) - 1];
  const Tensor targets = Tensor::from<int64_t>(classes, {kBatch}, device);
  return [=] {
    optimizer->zero_grad();
    plugrad::cross_entropy((*network)(images), targets).backward();
    optimizer->step();
  };
}

// Times depend on the build: the context in the output names this core, the plugin's file and its threads.
void add_device(const std::string& name, const Limits& limits) {
  if (!plugrad::has_device(name)) {
    std::cerr << "left out: device " << name << ", which no plugin brings\n";
    return;
  }
  const plugrad::Device device(name);
  benchmark::AddCustomContext(name, device.description() + " (" + device.plugin() + ")");
  Rows<Plugrad>::add(name, {device}, limits);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    add_device("cpu", {});
    add_device("reference", {.elements = 10'000, .matmul = 128, .training = false});
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
  } catch (const plugrad::Error& error) {
    std::cerr << "bench: " << error.what() << "\n";
    return 1;
  }
}
