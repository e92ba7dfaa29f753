// Measures the rates of a device with a full queue. Prints a line "NAME<tab>VALUE<tab>UNIT" for each rate, as
// bench/rates_torch.py does for PyTorch. Higher is better, except for the cost of a call.
#include <plugrad/plugrad.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace nn = plugrad::nn;
using plugrad::Device;
using plugrad::DType;
using plugrad::Tensor;
using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

constexpr int kRounds = 7;
constexpr double kRound = 0.1;  // seconds

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// Seconds of one call in a full queue, in the best round: other work on the machine disturbs the best round least.
double seconds_of(const Work& work, Device device) {
  for (int i = 0; i < 3; ++i) work();
  device.sync();
  double start = now();
  work();
  device.sync();
  const int calls = std::clamp(static_cast<int>(kRound / std::max(now() - start, 1e-9)), 1, 2000);
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    start = now();
    for (int i = 0; i < calls; ++i) work();
    device.sync();
    best = std::min(best, (now() - start) / calls);
  }
  return best;
}

void print(const std::string& name, double value, const char* unit) {
  std::printf("%s\t%.6g\t%s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

void print_bandwidths(Device d, int64_t most) {
  for (int64_t mega = 16; mega <= most; mega *= 4) {
    const int64_t n = mega << 20;
    const Tensor a = plugrad::rand({n}, DType::f32, d), b = plugrad::rand({n}, DType::f32, d);
    const auto rate = [&](const char* name, double arrays, const Work& work) {
      print(std::string(name) + " " + std::to_string(4 * mega) + " MiB",
            arrays * 4e-9 * static_cast<double>(n) / seconds_of(work, d), "GB/s");
    };
    rate("copy", 2, [&] { (void)plugrad::clone(a); });
    rate("add", 3, [&] { (void)plugrad::add(a, b); });
    rate("mul", 3, [&] { (void)plugrad::mul(a, b); });
    rate("relu", 2, [&] { (void)plugrad::relu(a); });
    rate("exp", 2, [&] { (void)plugrad::exp(a); });
    rate("sum", 1, [&] { (void)plugrad::sum(a); });
    rate("max", 1, [&] { (void)plugrad::max(a); });
    const Tensor rows = plugrad::reshape(a, {n / 4096, 4096});
    rate("sum of rows", 1, [&] { (void)plugrad::sum(rows, {1}); });
    rate("sum of columns", 1, [&] { (void)plugrad::sum(rows, {0}); });
    rate("log_softmax", 2, [&] { (void)plugrad::log_softmax(rows); });
  }
}

void print_products(Device d, const char* name, int64_t most) {
  for (int64_t n = 512; n <= most; n *= 2) {
    const Tensor a = plugrad::rand({n, n}, DType::f32, d), b = plugrad::rand({n, n}, DType::f32, d);
    const double seconds = seconds_of([&] { (void)plugrad::matmul(a, b); }, d);
    print(std::string(name) + " " + std::to_string(n),
          2e-12 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds, "TFLOP/s");
  }
}

// Measures only the time of the calling thread: the queue is never full.
void print_call(Device d) {
  const Tensor a = plugrad::rand({1}, DType::f32, d), b = plugrad::rand({1}, DType::f32, d);
  constexpr int kCalls = 200;
  double best = 1e9;
  for (int round = 0; round < 200; ++round) {
    d.sync();
    const double start = now();
    for (int i = 0; i < kCalls; ++i) (void)plugrad::add(a, b);
    best = std::min(best, (now() - start) / kCalls);
  }
  d.sync();
  print("call of add", best * 1e9, "ns");
}

// Fashion-MNIST's network and batch size, on random data of the same shape that is already on the device.
struct Digits {
  nn::Sequential net;
  nn::Adam adam;
  Tensor x, target;

  explicit Digits(Device d)
      : net{layer(784, 512, d), nn::ReLU(), layer(512, 512, d), nn::ReLU(), layer(512, 10, d)}, adam(net.parameters(), 1e-3),
        x(plugrad::rand({256, 784}, DType::f32, d)), target(Tensor::from(std::vector<int64_t>(256, 3), {256}, d)) {}

  static nn::Linear layer(int64_t in, int64_t out, Device d) { return nn::Linear(in, out, true, DType::f32, d); }
  Tensor step(const Tensor& images, const Tensor& labels) {
    adam.zero_grad();
    Tensor loss = plugrad::cross_entropy(net(images), labels);
    loss.backward();
    adam.step();
    return loss;
  }
};

void print_steps(Device d) {
  Digits digits(d);
  const double seconds = seconds_of([&] { (void)digits.step(digits.x, digits.target); }, d);
  print("steps of 784-512-512-10, batch 256, Adam", 1 / seconds, "/s");
}

// Fusions are compiled in the background, so the first calls are not counted. `how` is added to the names.
void print_compiled(Device d, const std::string& how) {
  Digits digits(d);
  auto step = plugrad::compile([&](const Tensor& x, const Tensor& target) { return digits.step(x, target); });
  Tensor a = plugrad::rand({10'000'000}, DType::f32, d).requires_grad_();
  auto chain = plugrad::compile([](Tensor x) {
    x.clear_grad();
    Tensor total = plugrad::sum(plugrad::mul(plugrad::relu(x), x));
    total.backward();
    return total;
  });
  for (const double until = now() + 3; now() < until; d.sync()) {
    (void)step(digits.x, digits.target);
    (void)chain(a);
  }
  const double seconds = seconds_of([&] { (void)step(digits.x, digits.target); }, d);
  print("steps of 784-512-512-10, batch 256, Adam, " + how, 1 / seconds, "/s");
  print("(relu(x) x).sum() and its gradient, 1e7, " + how, 1 / seconds_of([&] { (void)chain(a); }, d), "/s");
}

// An optimiser step over as many parameters as a deep network has.
void print_updates(Device d) {
  std::vector<Tensor> parameters;
  for (int i = 0; i < 64; ++i) {
    parameters.push_back(plugrad::rand({i % 2 ? int64_t{256} : int64_t{256 * 256}}, DType::f32, d).requires_grad_());
    plugrad::sum(parameters.back()).backward();
  }
  nn::Adam adam(parameters, 1e-3);
  print("steps of Adam alone, 64 parameters, 2.1 million elements", 1 / seconds_of([&] { adam.step(); }, d), "/s");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda:0", part = argc > 2 ? argv[2] : "all";
  if (argc > 3 || (part != "all" && part != "tf32" && part != "graphs" && part != "small")) {
    std::fprintf(stderr,
                 "usage: bench_rates [DEVICE [all|tf32|graphs|small]]\n"
                 "  tf32: matrix products alone; make the device with its option tf32=1 (PLUGRAD_CUDA_OPTIONS)\n"
                 "  graphs: compiled steps alone\n"
                 "  small: all figures, of small tensors\n");
    return 2;
  }
  try {
    const Device d(device);
    if (part == "tf32") return print_products(d, "matmul tf32", 8192), 0;
    if (part == "graphs") return print_compiled(d, "compiled, as a graph"), 0;
    print_bandwidths(d, part == "small" ? 16 : 256);
    print_products(d, "matmul f32", part == "small" ? 512 : 8192);
    print_call(d);
    print_steps(d);
    print_updates(d);
    print_compiled(d, "compiled");
  } catch (const plugrad::Error& error) {
    std::fprintf(stderr, "bench_rates: %s\n", error.what());
    return 1;
  }
}
