// consumer [DEVICE]: trains a small network to compute the exclusive or, on any device.
#include <plugrad/plugrad.hpp>

#include <iostream>

using namespace plugrad;

namespace {

// Returns the mean squared error of the network.
Tensor error_of(const nn::Module& network, const Tensor& inputs, const Tensor& wanted) {
  const Tensor miss = network(inputs) - wanted;
  return mean(miss * miss);
}

int teach(const Device& device) {
  // Draws the weights on a device with random numbers, and then moves the network to the given device.
  set_default_device(has_device("cpu") ? "cpu" : "reference");
  manual_seed(1);
  nn::Sequential network{nn::Linear(2, 8), nn::Tanh(), nn::Linear(8, 1)};
  network.to(device);
  const Tensor inputs = Tensor::from<float>({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2}, device);
  const Tensor wanted = Tensor::from<float>({0, 1, 1, 0}, {4, 1}, device);
  nn::SGD optimizer(network.parameters(), 0.1);
  for (int step = 0; step < 2000; ++step) {
    optimizer.zero_grad();
    error_of(network, inputs, wanted).backward();
    optimizer.step();
  }
  const NoGrad no_grad;
  const double error = error_of(network, inputs, wanted).item<double>();
  std::cout << device.name() << " from " << device.plugin() << "\n" << network(inputs) << "\nerror " << error << "\n";
  return error < 0.01 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return teach(argc > 1 ? argv[1] : "cpu");
  } catch (const Error& error) {
    std::cerr << "consumer: " << error.what() << "\n";
    return 1;
  }
}
