// The caching allocator and the magazines, tested through tensors only.
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <tests/paths.hpp>

#include <gtest/gtest.h>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

namespace plugrad {
namespace {

constexpr uint64_t kMega = 1 << 20;
Tensor block(uint64_t bytes) { return full({static_cast<int64_t>(bytes / 4)}, 1); }

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.sync();
    device_.trim();
    before_ = device_.memory();
  }
  uint64_t active() const { return device_.memory().active - before_.active; }
  uint64_t cached() const { return device_.memory().cached - before_.cached; }
  uint64_t reserved() const { return device_.memory().reserved - before_.reserved; }
  // Waits until the allocator knows that nothing is in flight.
  void settle() const { device_.sync(); }
  const Device device_ = default_device();
  MemoryStats before_{};
};

TEST_F(Memory, IsCountedExactlyAbove4KB) {
  for (const uint64_t bytes : {uint64_t(8192), 3 * kMega / 4, kMega, 5 * kMega}) {
    const Tensor x = block(bytes);
    EXPECT_EQ(active(), bytes);
    const Tensor y = block(bytes);
    EXPECT_EQ(active(), 2 * bytes);
    EXPECT_GE(reserved(), active());
  }
  EXPECT_EQ(active(), 0u);
}

TEST_F(Memory, WastesAnEighthAtMost) {
  for (uint64_t bytes = 4100; bytes < 3 * kMega; bytes = bytes * 5 / 4 + 4) {
    const Tensor x = block(bytes / 4 * 4);
    EXPECT_GE(active(), bytes / 4 * 4);
    EXPECT_LE(active(), std::max(bytes + bytes / 8, bytes + 4096)) << bytes;
  }
}

TEST_F(Memory, OfADroppedTensorIsCachedAndUsedAgain) {
  {
    const Tensor x = block(kMega);
  }
  EXPECT_EQ(active(), 0u);
  EXPECT_GE(cached(), kMega);
  settle();
  const uint64_t taken = reserved();
  for (int i = 0; i < 100; ++i) {
    const Tensor x = block(kMega);
    EXPECT_EQ(active(), kMega);
    settle();
  }
  EXPECT_EQ(reserved(), taken);
}

TEST_F(Memory, GoesBackWhenTrimmed) {
  {
    const Tensor x = block(kMega), y = block(2 * kMega), z = block(8192);
  }
  settle();
  const uint64_t taken = reserved();
  EXPECT_GE(taken, 3 * kMega);
  EXPECT_EQ(device_.trim(), taken);
  EXPECT_EQ(cached(), 0u);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(device_.trim(), 0u);
}

TEST_F(Memory, InUseIsNotTrimmed) {
  const Tensor x = block(12 * kMega);  // too large to share a segment
  {
    const Tensor y = block(14 * kMega);
  }
  settle();
  EXPECT_EQ(device_.trim(), 14 * kMega);
  EXPECT_EQ(active(), 12 * kMega);
  EXPECT_EQ(x.to_vector<float>().back(), 1.0f);
}

TEST_F(Memory, RemembersItsPeakUntilThatIsReset) {
  {
    const Tensor x = block(3 * kMega);
  }
  EXPECT_GE(device_.memory().peak, before_.active + 3 * kMega);
  device_.reset_peak();
  const uint64_t peak = device_.memory().peak;
  EXPECT_GE(peak, device_.memory().active);
  EXPECT_LE(peak, device_.memory().active + device_.memory().small);
  const Tensor y = block(kMega);
  EXPECT_EQ(device_.memory().peak, peak + kMega);
}

TEST_F(Memory, OfAViewIsItsTensors) {
  Tensor view;
  {
    const Tensor x = block(kMega);
    view = x.detach();
  }
  EXPECT_EQ(active(), kMega);
  EXPECT_EQ(view.to_vector<float>().size(), kMega / 4);
  view = {};
  EXPECT_EQ(active(), 0u);
}

TEST_F(Memory, OfSmallTensorsIsCountedBlockByBlock) {
  const uint64_t bytes = std::max<uint64_t>(64, device_.alignment());
  std::vector<Tensor> many;
  for (int i = 0; i < 10000; ++i) many.push_back(full({16}, i));
  EXPECT_EQ(active(), 10000 * bytes);
  const uint64_t chunks = device_.memory().small;
  EXPECT_GE(chunks, 10000 * bytes);
  for (size_t i = 0; i < many.size(); i += 997) EXPECT_EQ(many[i].to_vector<float>()[15], static_cast<float>(i));
  many.clear();
  EXPECT_EQ(active(), 0u);
  for (int i = 0; i < 10000; ++i) many.push_back(full({16}, i));
  EXPECT_EQ(active(), 10000 * bytes);
  EXPECT_EQ(device_.memory().small, chunks);
}

TEST_F(Memory, IsCutJoinedAndUsedAgainForOtherSizes) {
  {
    std::vector<Tensor> many;
    for (int i = 0; i < 9; ++i) many.push_back(block(2 * kMega));
  }
  settle();
  const MemoryStats cut = device_.memory();
  for (const uint64_t megabytes : {10, 9, 8, 7, 6}) {
    const Tensor x = block(megabytes * kMega);
    EXPECT_EQ(x.to_vector<float>().back(), 1.0f);
    EXPECT_EQ(device_.memory().reserved, cut.reserved);
    EXPECT_EQ(device_.memory().segments, cut.segments);
  }
  EXPECT_GE(device_.memory().largest_free, 6 * kMega);
}

TEST_F(Memory, OfAnAbsurdSizeIsAnError) {
  EXPECT_THROW(full({int64_t(1) << 60}, 1), Error);
  EXPECT_EQ(active(), 0u);
}

TEST_F(Memory, WritesOfOneTensorDoNotReachAnother) {
  std::vector<Tensor> many;
  constexpr int64_t kCounts[] = {1, 15, 16, 17, 64, 255, 1000, 1024, 1025, 4000};
  for (int round = 0; round < 3; ++round)
    for (const int64_t count : kCounts) many.push_back(full({count}, static_cast<double>(many.size())));
  for (size_t i = 0; i < many.size(); ++i)
    EXPECT_EQ(many[i].to_vector<float>(), std::vector<float>(static_cast<size_t>(many[i].count()), static_cast<float>(i)));
}

// A device with memory for two blocks and a high latency: released blocks are still in flight when memory is needed.
TEST(MemoryInFlight, IsWaitedForBeforeThereIsAnError) {
  if (!has_device("sim")) load_plugin(test::test_plugin_path("libplugrad-backend-sim.so"));
  set_device_options("sim:1", {{"memory", std::to_string(8 * kMega)}, {"latency", "3000"}});
  const Device device("sim:1");
  for (int round = 0; round < 8; ++round)
    for (const uint64_t megabytes : {3, 2, 1}) {  // no size can reuse a block of another size
      const Tensor x = full({static_cast<int64_t>(megabytes * kMega / 4)}, round, DType::f32, device), y = x + 1;
      if (round == 7) {
        EXPECT_EQ(y.to_vector<float>().back(), 8);
      }
    }
  EXPECT_THROW(full({static_cast<int64_t>(3 * kMega)}, 1, DType::f32, device), Error);
  EXPECT_EQ(full({static_cast<int64_t>(kMega)}, 5, DType::f32, device).to_vector<float>().back(), 5);
}

// --- Threads.

uint64_t resident_bytes() {
  long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) ADD_FAILURE() << "cannot read statm";
  if (file) std::fclose(file);
  return static_cast<uint64_t>(resident) * 4096;
}

// A queue of at most 4000 tensors.
class Queue {
 public:
  void put(Tensor x) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.size() < 4000; });
    items_.push_back(std::move(x));
    changed_.notify_all();
  }
  Tensor take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    Tensor x = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return x;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tensor> items_;
};

TEST_F(Memory, StaysFlatWhenOneThreadMakesAMillionAndAnotherDropsThem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory grows";
#endif
  Queue queue;
  std::atomic<int> dropped{0};
  std::thread dropper([&] {
    while (queue.take().defined()) ++dropped;
  });
  uint64_t early = 0;
  constexpr int kCount = 1000000;
  for (int i = 0; i < kCount; ++i) {
    if (i == kCount / 20) early = resident_bytes();
    queue.put(full({2}, 1));
  }
  queue.put({});
  dropper.join();
  EXPECT_EQ(dropped, kCount);
  EXPECT_LT(resident_bytes(), early + 64 * kMega);
  EXPECT_LT(active(), 16 * kMega);
}

TEST_F(Memory, OfThreadsThatEndComesBack) {
  const auto work = [] {
    std::vector<Tensor> many;
    for (int i = 0; i < 500; ++i) many.push_back(full({100}, i));
  };
  for (int i = 0; i < 3; ++i) std::thread(work).join();
  const uint64_t held = active();
  for (int i = 0; i < 100; ++i) std::thread(work).join();
  EXPECT_LE(active(), held + 256 * 1024);
}

thread_local Tensor kept_to_the_end;

TEST_F(Memory, OfThreadLocalTensorsComesBackThoughTheyDieLast) {
  const auto work = [] {
    EXPECT_FALSE(kept_to_the_end.defined());  // constructed before the library's state of this thread
    kept_to_the_end = full({500}, 1) + 1;
  };
  for (int i = 0; i < 3; ++i) std::thread(work).join();
  const uint64_t held = active();
  for (int i = 0; i < 300; ++i) std::thread(work).join();
  EXPECT_LE(active(), held + 256 * 1024);
}

TEST_F(Memory, OfATensorThatOutlivesItsThreadIsSound) {
  std::vector<Tensor> kept(8);
  for (size_t i = 0; i < kept.size(); ++i) std::thread([&, i] { kept[i] = full({50}, static_cast<double>(i)) + 1; }).join();
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].to_vector<float>(), std::vector<float>(50, static_cast<float>(i + 1)));
}

}  // namespace
}  // namespace plugrad
