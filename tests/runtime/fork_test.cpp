// A process that forks: devices without streams work in the child, and devices with streams throw an error.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

// The leak sanitizer is off in a child: it would report memory to which only other threads of the parent referred.
static bool in_child = false;
extern "C" int __lsan_is_turned_off() { return in_child; }

namespace plugrad {
namespace {

constexpr unsigned kPatience = 120;  // seconds until a hanging child is killed
#if defined(__SANITIZE_THREAD__)
constexpr bool kMayFork = false;
#else
constexpr bool kMayFork = true;
#endif

// Forks. The child calls exit, which runs exit handlers, with the value that body returns.
template <class Body> int status_of_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    in_child = true;
    alarm(kPatience);
    int status = 100;
    try {
      status = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    std::exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Computes with small and large blocks, a thread pool, the graph and random numbers; returns 0 if all results are right.
int compute(Device device) {
  const Tensor x = full({300, 300}, 2, DType::f32, device).requires_grad_();
  const Tensor y = sum(mul(matmul(x, full({300, 300}, 1, DType::f32, device)), 1));
  y.backward();
  if (y.item<float>() != 300.0f * 300 * 600) return 1;
  if (x.grad().to_vector<float>()[77] != 300) return 2;
  if (add(full({3}, 1, DType::f32, device), 1).to_vector<float>()[2] != 2) return 3;
  if (mean(rand({1000000}, DType::f32, device)).item<float>() < 0.4f) return 4;
  return device.memory().active ? 0 : 5;
}

// Threads that compute on devices until this object is destroyed.
class Crowd {
 public:
  explicit Crowd(const std::vector<Device>& devices) {
    for (const Device& device : devices)
      for (int i = 0; i < 2; ++i)
        threads_.emplace_back([this, device, i] {
          while (!stop_) {
            for (const int64_t count : {1, 100, 3000, 60000}) {
              const Tensor x = full({count}, i, DType::f32, device).requires_grad_();
              sum(add(x, x)).backward();
            }
            std::thread([device] { full({3}, 1, DType::f32, device); }).join();
            device.memory();
            device.trim();
            device.counters();
            log(LogLevel::debug, "still here");
            ++rounds_;
          }
        });
    while (rounds_ < 4) std::this_thread::yield();
  }
  ~Crowd() {
    stop_ = true;
    for (std::thread& each : threads_) each.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::vector<std::thread> threads_;
};

std::vector<Device> host_devices() {
  std::vector<Device> devices;
  for (const char* name : {"cpu", "reference"})
    if (has_device(name)) devices.emplace_back(name);
  return devices;
}

TEST(Fork, AChildComputesWhileTheParentsThreadsRun) {
  if (!kMayFork) GTEST_SKIP() << "the thread sanitizer does not follow a fork of a process with threads";
  const std::vector<Device> devices = host_devices();
  ASSERT_FALSE(devices.empty());
  for (const Device& device : devices) ASSERT_EQ(compute(device), 0);
  const Crowd crowd(devices);
  for (int round = 0; round < 25; ++round)
    for (const Device& device : devices)
      ASSERT_EQ(status_of_child([&] { return compute(device); }), 0) << device.name() << ", round " << round;
  for (const Device& device : devices) EXPECT_EQ(compute(device), 0);
}

TEST(Fork, AChildOpensDevicesAndLoadsPluginsOfItsOwn) {
  if (!kMayFork) GTEST_SKIP() << "the thread sanitizer does not follow a fork of a process with threads";
  const Crowd crowd({Device("reference")});
  const int status = status_of_child([] {
    load_plugin(test::test_plugin_path("libplugrad-backend-c11.so"));
    return add(full({3}, 1, DType::f32, Device("c11")), 1).to_vector<float>()[2] == 2 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(Fork, AChildOfAProcessWithAnAsynchronousDeviceGetsAClearErrorAndEndsCleanly) {
  if (!kMayFork) GTEST_SKIP() << "the thread sanitizer does not follow a fork of a process with threads";
  if (!has_device("sim")) load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
  const Device sim("sim");
  Tensor small = full({3}, 1, DType::f32, sim), large = full({100000}, 1, DType::f32, sim);
  const Tensor leaf = full({3}, 1, DType::f32, sim).requires_grad_();
  const Tensor recorded = sum(mul(leaf, leaf));
  const Crowd crowd({sim, Device("reference")});
  const int status = status_of_child([&] {
    const auto lost = [](auto work) {
      try {
        work();
      } catch (const Error& error) {
        return error.code() == Code::device_lost && std::string(error.what()).find("forked") != std::string::npos;
      }
      return false;
    };
    if (!lost([&] { add(small, small); })) return 1;
    if (!lost([&] { full({100000}, 1, DType::f32, sim); })) return 2;
    if (!lost([&] { small.to_vector<float>(); })) return 3;
    if (!lost([&] { Tensor::from(std::vector<float>{1}, {1}, sim); })) return 4;
    if (!lost([&] { sim.sync(); })) return 5;
    if (!lost([&] { recorded.backward(); })) return 6;
    if (!lost([&] { to(small, Device("reference")); })) return 7;
    if (!lost([&] { Device("sim:1"); })) return 8;  // the device is not open yet, but its plugin has used its driver
    small = large = {};
    sim.trim();
    sim.memory();
    return compute(Device("reference"));
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(add(small, 1).to_vector<float>()[2], 2);
}

}  // namespace
}  // namespace plugrad
