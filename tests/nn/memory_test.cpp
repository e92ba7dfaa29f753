// A long training takes as much memory at its end as at its beginning.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace plugrad {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // the sanitizer keeps freed memory
#else
constexpr bool kSanitized = false;
#endif

// 2,000 steps, or PLUGRAD_TEST_STEPS; fewer on slow test devices.
int64_t steps_of_the_test() {
  const char* steps = std::getenv("PLUGRAD_TEST_STEPS");
  if (steps) return std::atoll(steps);
  return default_device().name().starts_with("cpu") ? 2000 : 50;
}

// The bytes of the process that reside in memory.
int64_t resident() {
  long pages = 0, in_memory = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld %ld", &pages, &in_memory) != 2) ADD_FAILURE() << "cannot read statm";
  if (file) std::fclose(file);
  return static_cast<int64_t>(in_memory) * 4096;
}

struct Held {
  uint64_t active, cached;
  int64_t process;
};
Held held(const Device& device) {
  const MemoryStats stats = device.memory();
  return {stats.active, stats.cached, resident()};
}

// A network with a layer of each kind that keeps state from one step to the next.
TEST(Training, HoldsItsMemoryConstant) {
  manual_seed(1);
  nn::Sequential net{nn::Conv2d(1, 2, {3}, {.padding = {1}}),
                     nn::BatchNorm2d(2),
                     nn::ReLU(),
                     nn::MaxPool2d({2}),
                     nn::Flatten(),
                     nn::Dropout(0.1),
                     nn::Linear(18, 4),
                     nn::LayerNorm({4})};
  nn::Adam optimizer(net.parameters(), 1e-3);
  nn::CosineAnnealingLR schedule(optimizer, 1000);
  const Tensor x = randn({4, 1, 6, 6}), y = randint(0, 4, {4});
  const auto step = [&] {
    const Tensor loss = cross_entropy(net(x), y);
    optimizer.zero_grad();
    loss.backward();
    clip_grad_norm_(net.parameters(), 1);
    optimizer.step();
    schedule.step();
    return loss;
  };
  const int64_t steps = steps_of_the_test();
  for (int64_t i = 0; i < std::min<int64_t>(200, steps); ++i) (void)step().item<double>();
  const Held before = held(default_device());
  for (int64_t i = 0; i < steps; ++i) (void)step().item<double>();
  const Held after = held(default_device());
  EXPECT_EQ(after.active, before.active);
  EXPECT_EQ(after.cached, before.cached);
  if (!kSanitized) {
    EXPECT_LE(after.process, before.process + (1 << 20));
  }
}

}  // namespace
}  // namespace plugrad
