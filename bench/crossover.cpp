// Finds the number of elements above which a device is faster than the CPU. Times each op from submission to completion.
#include <plugrad/plugrad.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

using plugrad::Device;
using plugrad::Tensor;

constexpr const char* kUsage =
    "usage: bench_crossover [--device NAME] [--plugin FILE] [--most N] [--seconds S]\n"
    "  --device NAME   what is compared with cpu:0; by default cuda:0\n"
    "  --plugin FILE   loads this plugin file first\n"
    "  --most N        the largest number of elements; by default 100000000\n"
    "  --seconds S     how long each figure is measured; by default 0.2\n";

struct Settings {
  std::string device = "cuda:0", plugin;
  int64_t most = 100'000'000;
  double seconds = 0.2;
};

// One op on fixed tensors, which is timed repeatedly.
using Work = std::function<void()>;
struct Row {
  const char* name;
  Work (*prepare)(int64_t n, Device device);
};

Tensor uniform(int64_t n, Device device, double low) { return plugrad::rand({n}, plugrad::DType::f32, device, low, 1); }

constexpr Row kRows[] = {
    {"add",
     [](int64_t n, Device d) -> Work {
       return [a = uniform(n, d, -1), b = uniform(n, d, -1)] { (void)plugrad::add(a, b); };
     }},
    {"mul",
     [](int64_t n, Device d) -> Work {
       return [a = uniform(n, d, -1), b = uniform(n, d, -1)] { (void)plugrad::mul(a, b); };
     }},
    {"relu", [](int64_t n, Device d) -> Work { return [x = uniform(n, d, -1)] { (void)plugrad::relu(x); }; }},
    {"pow 2.5", [](int64_t n, Device d) -> Work { return [x = uniform(n, d, 0.01)] { (void)plugrad::pow(x, 2.5); }; }},
    {"sum", [](int64_t n, Device d) -> Work { return [x = uniform(n, d, -1)] { (void)plugrad::sum(x); }; }},
    {"(relu(x) x).sum() forward + backward",
     [](int64_t n, Device d) -> Work {
       return [x = uniform(n, d, -1).requires_grad_()]() mutable {
         x.clear_grad();
         plugrad::sum(plugrad::mul(plugrad::relu(x), x)).backward();
       };
     }},
};

double seconds_of(const Work& work, Device device) {
  using Clock = std::chrono::steady_clock;
  const auto before = Clock::now();
  work();
  device.sync();
  return std::chrono::duration<double>(Clock::now() - before).count();
}

double median(std::vector<double>& times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

struct Figures {
  double cpu, device;  // seconds
};

// Measures both devices in turns, so that a disturbance affects both. Returns nothing if memory does not suffice.
std::optional<Figures> measure(const Row& row, int64_t n, Device cpu, Device device, double seconds) {
  constexpr size_t kLeast = 5;
  try {
    const Work here = row.prepare(n, cpu), there = row.prepare(n, device);
    for (int i = 0; i < 2; ++i) {
      seconds_of(here, cpu);
      seconds_of(there, device);
    }
    std::vector<double> cpu_times, device_times;
    for (double spent = 0; spent < 2 * seconds || cpu_times.size() < kLeast;) {
      cpu_times.push_back(seconds_of(here, cpu));
      device_times.push_back(seconds_of(there, device));
      spent += cpu_times.back() + device_times.back();
    }
    return Figures{median(cpu_times), median(device_times)};
  } catch (const plugrad::Error& error) {
    if (error.code() != plugrad::Code::out_of_memory) throw;
    return std::nullopt;
  }
}

void print_row(const Row& row, const Settings& settings, Device cpu, Device device) {
  std::printf("\n%s\n%12s %14s %14s %10s\n", row.name, "elements", "cpu us", "device us", "cpu/device");
  int64_t crossover = 0, last = 0;
  for (int64_t n = 100; n <= settings.most; n *= 10) {
    const std::optional<Figures> f = measure(row, n, cpu, device, settings.seconds);
    cpu.trim();
    device.trim();
    if (!f) {
      std::printf("%12lld  out of memory\n", static_cast<long long>(n));
      break;
    }
    std::printf("%12lld %14.2f %14.2f %10.2f\n", static_cast<long long>(n), f->cpu * 1e6, f->device * 1e6,
                f->cpu / f->device);
    std::fflush(stdout);
    last = n;
    if (f->device >= f->cpu) crossover = 0;
    else if (!crossover) crossover = n;
  }
  if (crossover)
    std::printf("crossover: from %lld elements on %s is the faster one\n", static_cast<long long>(crossover),
                device.name().c_str());
  else std::printf("crossover: none up to %lld elements\n", static_cast<long long>(last));
}

std::optional<Settings> parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return std::nullopt;
    const std::string key = argv[i], value = argv[i + 1];
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool is_number = !value.empty() && !*end && number > 0;
    if (key == "--device") settings.device = value;
    else if (key == "--plugin") settings.plugin = value;
    else if (key == "--most" && is_number) settings.most = static_cast<int64_t>(number);
    else if (key == "--seconds" && is_number) settings.seconds = number;
    else return std::nullopt;
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Settings> settings = parse(argc, argv);
  if (!settings) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    if (!settings->plugin.empty()) plugrad::load_plugin(settings->plugin);
    const Device cpu("cpu:0"), device(settings->device);
    std::printf("cpu:    %s\ndevice: %s, %s %s\n", cpu.description().c_str(), device.name().c_str(),
                device.description().c_str(), device.identity().c_str());
    std::printf("f32; one op from its submission until the device is done; medians of %g s in turns\n", settings->seconds);
    for (const Row& row : kRows) print_row(row, *settings, cpu, device);
  } catch (const plugrad::Error& error) {
    std::cerr << "bench_crossover: " << error.what() << "\n";
    return 1;
  }
}
