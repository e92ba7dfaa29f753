// Sixteen threads compute with, differentiate, copy, view and release tensors that they share.
#include <plugrad/plugrad.hpp>

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

namespace plugrad::test {
namespace {

constexpr int kThreads = 16;

int64_t operations() {
  const char* wanted = std::getenv("PLUGRAD_SOAK_OPERATIONS");
  return wanted ? std::atoll(wanted) : 2000;
}

// Tensors that pass from thread to thread. The elements of each tensor are equal, 1 or 2, so that partial or wrong writes
// show.
class Pool {
 public:
  explicit Pool(Device device) {
    for (size_t i = 0; i < kSlots; ++i) slots_[i] = full(kShape, 1 + static_cast<double>(i % 2), DType::f32, device);
  }
  Tensor take(size_t i) const {
    const std::lock_guard lock(mutex_);
    return slots_[i % kSlots];
  }
  void put(size_t i, Tensor x) {
    const std::lock_guard lock(mutex_);
    std::swap(slots_[i % kSlots], x);
  }
  static constexpr size_t kSlots = 32;
  static constexpr int64_t kSide = 9;
  static inline const Shape kShape{kSide, kSide};

 private:
  mutable std::mutex mutex_;
  std::array<Tensor, kSlots> slots_;
};

class Worker {
 public:
  Worker(Pool& pool, Device device, Device other, uint32_t seed)
      : pool_(pool), device_(device), other_(other), random_(seed) {}

  void run(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const Tensor x = pool_.take(random_());
      const Tensor y = one_of(x);
      if (i % 64 == 0) check(y);
      pool_.put(random_(), y);
    }
  }

 private:
  // Returns a tensor equal to x, made in one of many ways.
  Tensor one_of(const Tensor& x) {
    constexpr double kSide = Pool::kSide;
    switch (random_() % 12) {
      case 0: return sub(mul(x, 3), mul(x, 2));
      case 1: return transpose(x);
      case 2: return div(matmul(x, ones(Pool::kShape, DType::f32, device_)), kSide);
      case 3: return expand(div(sum(x, {0}, true), kSide), Pool::kShape);
      case 4: return gradient_of(x);
      case 5: return to(to(x, other_), device_);
      case 6: return cast(cast(x, DType::f64), DType::f32);
      case 7: return where(gt(rand({Pool::kSide, 1}, DType::f32, device_), 0.5), x, neg(neg(x)));
      case 8: return gather(x, 0, zeros(Pool::kShape, DType::i64, device_));
      case 9: return cat({slice(x, 0, 0, 4), slice(x, 0, 4, Pool::kSide)}, 0);
      case 10: return large(x);
      default: return relu(clone(x));
    }
  }
  // The gradient of x^2 / 2 is x.
  static Tensor gradient_of(const Tensor& x) {
    const Tensor leaf = x.detach().requires_grad_();
    sum(mul(mul(leaf, leaf), 0.5)).backward();
    return leaf.grad();
  }
  // Computes x again through a tensor of more than 4 KB, which the device's allocator serves.
  static Tensor large(const Tensor& x) {
    const Tensor wide = mul(expand(reshape(x, {1, Pool::kSide, Pool::kSide}), {40, Pool::kSide, Pool::kSide}), 1);
    return div(sum(wide, {0}), 40);
  }
  static void check(const Tensor& x) {
    const std::vector<float> values = contiguous(x).to_vector<float>();
    for (const float value : values) ASSERT_TRUE(std::abs(value - std::round(values[0])) < 1e-3) << value;
    ASSERT_TRUE(std::round(values[0]) == 1 || std::round(values[0]) == 2) << values[0];
  }

  Pool& pool_;
  Device device_, other_;
  std::mt19937 random_;
};

TEST(MixedThreads, ShareTensorsOfOneDevice) {
  const Device device = default_device();
  Device other = device;
  for (const std::string& name : device_names())
    if (Device(name) != device && (Device(name).capabilities() & PLUGRAD_HOST_MEM)) other = Device(name);
  Pool pool(device);
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      try {
        Worker(pool, device, other, static_cast<uint32_t>(t)).run(operations());
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& each : threads) each.join();
  const MemoryStats held = device.memory();
  EXPECT_EQ(held.reserved, held.active + held.cached);
}

}  // namespace
}  // namespace plugrad::test
