// Each allocation of host memory fails once: no device memory stays allocated, and the next run gives the expected result.
#include <tests/soak/scenarios.hpp>

#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace plugrad::test {
namespace {

// Counts down at each allocation of this thread; the allocation that reaches 0 fails.
thread_local int64_t until_failure = -1;
std::atomic<int64_t> live{0};

void* obtain(size_t bytes, size_t alignment) {
  if (until_failure > 0 && --until_failure == 0) return nullptr;
  void* address = nullptr;
  if (posix_memalign(&address, std::max(alignment, sizeof(void*)), bytes ? bytes : 1)) return nullptr;
  ++live;
  return address;
}
void* obtain_or_throw(size_t bytes, size_t alignment) {
  if (void* address = obtain(bytes, alignment)) return address;
  throw std::bad_alloc();
}
void give_back(void* address) {
  if (address) --live;
  std::free(address);
}

}  // namespace
}  // namespace plugrad::test

void* operator new(size_t bytes) { return plugrad::test::obtain_or_throw(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return plugrad::test::obtain_or_throw(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* address) noexcept { plugrad::test::give_back(address); }
void operator delete(void* address, size_t) noexcept { plugrad::test::give_back(address); }
void operator delete(void* address, std::align_val_t) noexcept { plugrad::test::give_back(address); }
void operator delete(void* address, size_t, std::align_val_t) noexcept { plugrad::test::give_back(address); }

namespace plugrad::test {
namespace {

class HostMemory : public testing::TestWithParam<std::tuple<Scenario, const char*>> {
 protected:
  static constexpr int64_t kSide = 12;

  void SetUp() override {
    const std::string name = std::get<1>(GetParam());
    if (!has_device(name)) GTEST_SKIP() << "the plugin " << name << " is not built";
    device_ = Device(name);
  }
  double run() { return std::get<0>(GetParam()).run(device_, kSide); }
  // Runs the scenario while the n-th allocation fails. Returns whether the run reached that allocation.
  bool survives(int64_t n, double expected) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const uint64_t active = device_.memory().active;
    until_failure = n;
    try {
      const double found = run();
      const bool reached = std::exchange(until_failure, -1) == 0;
      EXPECT_EQ(found, expected);
      EXPECT_EQ(device_.memory().active, active) << "something keeps memory";
      return reached;
    } catch (const std::bad_alloc&) {
      ++failures_;
    } catch (const Error& error) {
      until_failure = -1;
      ++failures_;
      EXPECT_EQ(error.code(), Code::out_of_memory) << error.what();
    }
    until_failure = -1;
    EXPECT_EQ(device_.memory().active, active) << "something keeps memory";
    return true;
  }

  Device device_;
  int64_t failures_ = 0;
};

TEST_P(HostMemory, MayFailAtEachAllocation) {
  const double expected = run();
  for (int i = 0; i < 3; ++i) run();
  const int64_t before = live;
  int64_t n = 1;
  while (survives(n, expected)) ++n;
  EXPECT_EQ(run(), expected);
  std::printf("%lld allocations, %lld exceptions, %lld more blocks at the end\n", static_cast<long long>(n - 1),
              static_cast<long long>(failures_), static_cast<long long>(live - before));
  EXPECT_GT(failures_, 5);
  EXPECT_LT(live - before, 50) << "some failure leaks";
}

INSTANTIATE_TEST_SUITE_P(Programs, HostMemory,
                         testing::Combine(testing::ValuesIn(scenarios()), testing::Values("reference", "cpu")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param);
                         });

}  // namespace
}  // namespace plugrad::test
