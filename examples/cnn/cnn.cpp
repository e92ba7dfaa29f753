// cnn [EPOCHS] [DEVICE] [IMAGES]: trains a small convolutional network on all or the first IMAGES images of Fashion-MNIST.
// cnn.py trains the same network in Python.
#include <plugrad/io/fashion_mnist.hpp>
#include <plugrad/plugrad.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>

using namespace plugrad;

namespace {

constexpr int64_t kBatch = 128;
constexpr double kRate = 0.01;

struct Samples {
  Tensor images, labels;  // (n, 1, 28, 28) in 0 .. 1, and (n), i64
};

Samples samples_of(const io::LabelledImages& read, int64_t count, Device device) {
  const Tensor pixels =
      Tensor::from_host(read.pixels.data(), static_cast<size_t>(count * 28 * 28), DType::u8, {count, 1, 28, 28}, device);
  const std::vector<int64_t> labels(read.labels.begin(), read.labels.begin() + count);
  return {cast(pixels, DType::f32) / 255, Tensor::from(labels, {count}, device)};
}

nn::Sequential network() {
  return nn::Sequential{nn::Conv2d(1, 16, {3}, {.padding = {1}}),
                        nn::MaxPool2d({2}),
                        nn::BatchNorm2d(16),
                        nn::ReLU(),
                        nn::Conv2d(16, 32, {3}, {.padding = {1}}),
                        nn::MaxPool2d({2}),
                        nn::BatchNorm2d(32),
                        nn::ReLU(),
                        nn::Flatten(),
                        nn::Dropout(0.1),
                        nn::Linear(32 * 7 * 7, 10)};
}

int teach(int64_t epochs, Device device, int64_t limit) {
  set_default_device(device);
  manual_seed(1);
  const io::FashionMnist data = io::read_fashion_mnist();
  const Samples train = samples_of(data.train, std::min(limit, data.train.count), device);
  const Samples test = samples_of(data.test, data.test.count, device);
  nn::Sequential model = network();
  DataLoader loader(TensorDataset({train.images, train.labels}), {.batch_size = kBatch, .shuffle = true, .seed = 1});
  const double steps = static_cast<double>(epochs * loader.size());
  nn::Adam optimizer(model.parameters(), kRate);
  nn::LambdaLR schedule(optimizer, [=](int64_t step) {  // rises to the largest rate in a fifth of the steps, then falls to 0
    const double at = static_cast<double>(step);
    return std::max(0.0, std::min(5 * (at + 1) / steps, 1.25 * (1 - at / steps)));
  });
  const auto begun = std::chrono::steady_clock::now();
  const auto report = [&](int64_t epoch, double loss) {
    model.eval();
    const double right = accuracy(model, test.images, test.labels);
    model.train();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    std::cout << "epoch " << epoch + 1 << ": loss " << loss << ", " << 100 * right << "% of the test images right after "
              << taken.count() << " s\n";
  };
  fit(model, loader, optimizer, {.epochs = epochs, .scheduler = &schedule, .on_epoch = report});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Device device = argc > 2 ? Device(argv[2]) : default_device();
    return teach(argc > 1 ? std::stoll(argv[1]) : 6, device, argc > 3 ? std::stoll(argv[3]) : 60000);
  } catch (const std::exception& error) {
    std::cerr << "cnn: " << error.what() << "\n";
    return 1;
  }
}
