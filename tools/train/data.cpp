#include <tools/train/data.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/io/fashion_mnist.hpp>
#include <plugrad/io/idx.hpp>
#include <plugrad/io/moons.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace plugrad::training {
namespace {

Samples to_samples(io::LabelledImages images) {
  Samples samples;
  samples.count = images.count;
  samples.features = images.rows * images.columns;
  samples.pixels = std::move(images.pixels);
  samples.labels.assign(images.labels.begin(), images.labels.end());
  return samples;
}

Samples to_samples(io::Moons moons) {
  Samples samples;
  samples.count = static_cast<int64_t>(moons.labels.size());
  samples.features = 2;
  samples.points = std::move(moons.points);
  samples.labels = std::move(moons.labels);
  return samples;
}

int64_t classes_of(const Samples& samples) { return *std::ranges::max_element(samples.labels) + 1; }

Data moons_data(uint64_t seed) {
  constexpr int64_t kTrain = 1000, kTest = 500;
  constexpr double kNoise = 0.1;
  Data data;
  data.train = to_samples(io::make_moons(kTrain, kNoise, seed));
  data.test = to_samples(io::make_moons(kTest, kNoise, ~seed));
  data.has_test = true;
  data.objective = Objective::max_margin;
  data.outputs = 1;
  return data;
}

Data image_data(io::LabelledImages train, const std::string& test_name, io::LabelledImages test) {
  Data data;
  data.has_test = test.count > 0;
  data.train = to_samples(std::move(train));
  data.outputs = classes_of(data.train);
  if (!data.has_test) return data;
  data.test = to_samples(std::move(test));
  if (data.test.features != data.train.features) {
    throw Error(Code::io_error, "[" + test_name + "] has images of " + std::to_string(data.test.features) +
                                    " pixels, but the training images have " + std::to_string(data.train.features));
  }
  if (classes_of(data.test) > data.outputs) {
    throw Error(Code::io_error, "[" + test_name + "] has the label " + std::to_string(classes_of(data.test) - 1) +
                                    ", but the training labels end at " + std::to_string(data.outputs - 1));
  }
  return data;
}

// The rows [first, first + count) as the network reads them.
std::vector<float> normalised(const Samples& samples, const std::array<float, 256>& table, int64_t first, int64_t count) {
  const auto begin = static_cast<size_t>(first * samples.features), size = static_cast<size_t>(count * samples.features);
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    values[i] = samples.pixels.empty() ? samples.points[begin + i] : table[samples.pixels[begin + i]];
  }
  return values;
}

// Uploads piece by piece, so that the host never holds all samples as floats.
Tensor upload(const Samples& samples, const Normalisation& normalisation, Device device) {
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<float>((static_cast<double>(i) / 255 - normalisation.mean) / normalisation.deviation);
  }
  constexpr int64_t kRows = 4096;
  Tensor all = zeros({samples.count, samples.features}, DType::f32, device);
  for (int64_t first = 0; first < samples.count; first += kRows) {
    const int64_t rows = std::min(kRows, samples.count - first);
    const std::vector<float> values = normalised(samples, table, first, rows);
    slice(all, 0, first, first + rows).copy_(Tensor::from(values, {rows, samples.features}, device));
  }
  return all;
}

Tensor upload_targets(const Samples& samples, Objective objective, Device device) {
  if (objective == Objective::cross_entropy) return Tensor::from(samples.labels, {samples.count}, device);
  std::vector<float> signs;
  for (const int64_t label : samples.labels) signs.push_back(label == 0 ? -1.0f : 1.0f);
  return Tensor::from(signs, {samples.count}, device);
}

}  // namespace

Data load_data(const TrainingConfig& config) {
  if (config.data == "moons") return moons_data(config.seed);
  if (config.data == "fashion-mnist") {
    const std::string directory = config.directory.empty() ? io::kFashionMnistDirectory : config.directory;
    io::FashionMnist files = io::read_fashion_mnist(directory);
    return image_data(std::move(files.train), directory, std::move(files.test));
  }
  io::LabelledImages test;
  if (!config.test_images.empty()) test = io::read_labelled_images(config.test_images, config.test_labels);
  return image_data(io::read_labelled_images(config.images, config.labels), config.test_images, std::move(test));
}

Normalisation normalisation_of(const Samples& samples) {
  if (samples.pixels.empty()) return {};
  std::array<uint64_t, 256> counts{};
  for (const uint8_t pixel : samples.pixels) ++counts[pixel];
  double sum = 0, squares = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double value = static_cast<double>(i) / 255;
    sum += static_cast<double>(counts[i]) * value;
    squares += static_cast<double>(counts[i]) * value * value;
  }
  const double count = static_cast<double>(samples.pixels.size());
  const double variance = squares / count - (sum / count) * (sum / count);
  return {sum / count, variance > 1e-12 ? std::sqrt(variance) : 1};
}

TensorDataset on_device(const Samples& samples, const Normalisation& normalisation, Objective objective, Device device) {
  const NoGrad unrecorded;
  return TensorDataset({upload(samples, normalisation, device), upload_targets(samples, objective, device)});
}

}  // namespace plugrad::training
