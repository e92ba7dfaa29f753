// The allocator of a device: which plugin functions it calls, and when.
#include <core/runtime/memory/small_blocks.hpp>
#include <plugrad/sdk/backend.hpp>
#include <tests/streams/rig.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>

namespace plugrad::test {
namespace {

constexpr uint64_t kMega = 1 << 20;

// A device without kernels that allocates host memory itself.
class Shelf final : public Backend {
 public:
  explicit Shelf(const Opening& opening) { opening.options.allow({"memory"}); }
  plugrad_buffer* alloc(uint64_t bytes) override {
    ++allocs;
    if (bytes > largest || bytes > room) throw std::bad_alloc();
    room -= bytes;
    auto* buffer = static_cast<plugrad_buffer*>(std::aligned_alloc(64, bytes));
    sizes_[buffer] = bytes;
    return buffer;
  }
  void free(plugrad_buffer* buffer) noexcept override {
    ++frees;
    room += sizes_.at(buffer);
    sizes_.erase(buffer);
    std::free(buffer);
  }
  static inline uint64_t allocs = 0, frees = 0, largest = ~0ull, room = ~0ull;

 private:
  std::map<plugrad_buffer*, uint64_t> sizes_;
};

class Shelved : public testing::Test {
 protected:
  // Makes a new device for each test.
  static DeviceState& shelf(const OptionList& options = {}) {
    static int made = 0;
    const std::string& name = *new std::string("shelf-" + std::to_string(++made));
    auto& table = *new plugrad_backend(backend_table<Shelf>(name.c_str()));
    add_backend(&table);
    set_device_options(name, options);
    Shelf::allocs = Shelf::frees = 0;
    Shelf::largest = Shelf::room = ~0ull;
    return Device(name).state();
  }
  static MemoryStats stats(DeviceState& device) { return Device(&device).memory(); }
};

TEST_F(Shelved, BlocksShareSegmentsByTheirSize) {
  DeviceState& d = shelf();
  std::vector<Ref<Storage>> held;
  for (int i = 0; i < 8; ++i) held.push_back(make(d, kMega / 4));
  EXPECT_EQ(Shelf::allocs, 1u);
  EXPECT_EQ(stats(d).reserved, 2 * kMega);
  for (int i = 0; i < 10; ++i) held.push_back(make(d, 2 * kMega));
  EXPECT_EQ(Shelf::allocs, 2u);
  EXPECT_EQ(stats(d).reserved, 22 * kMega);
  held.push_back(make(d, 11 * kMega));
  EXPECT_EQ(Shelf::allocs, 3u);
  EXPECT_EQ(stats(d).reserved, 34 * kMega);
  EXPECT_EQ(stats(d).segments, 3u);
  EXPECT_EQ(stats(d).active, 33 * kMega);
}

TEST_F(Shelved, WhatWasDroppedIsJoinedForALargerOne) {
  DeviceState& d = shelf();
  std::vector<Ref<Storage>> held;
  for (int i = 0; i < 10; ++i) held.push_back(make(d, 2 * kMega));
  held.clear();
  const Ref<Storage> a = make(d, 9 * kMega), b = make(d, 10 * kMega);
  EXPECT_EQ(Shelf::allocs, 1u);
  EXPECT_EQ(stats(d).largest_free, kMega);
}

TEST_F(Shelved, TheSameSizesAgainFindTheSameBlocks) {
  DeviceState& d = shelf();
  const std::vector<uint64_t> sizes{5000, 70000, kMega, 3 * kMega, 40 * kMega};
  std::vector<const Storage*> first;
  for (int round = 0; round < 5; ++round) {
    std::vector<Ref<Storage>> held;
    for (const uint64_t size : sizes) held.push_back(make(d, size));
    std::vector<const Storage*> blocks;
    for (const Ref<Storage>& each : held) blocks.push_back(each.get());
    if (!round) first = blocks;
    EXPECT_EQ(blocks, first);
  }
}

TEST_F(Shelved, NoMoreIsGivenBackThanIsWanted) {
  DeviceState& d = shelf({{"memory", std::to_string(64 * kMega)}});
  {
    const Ref<Storage> a = make(d, 20 * kMega), b = make(d, 12 * kMega), c = make(d, 24 * kMega);
  }
  const Ref<Storage> large = make(d, 26 * kMega);  // 18 MiB would not suffice
  EXPECT_EQ(Shelf::frees, 1u);
  EXPECT_EQ(stats(d).reserved, 62 * kMega);
  EXPECT_EQ(stats(d).largest_free, 24 * kMega);
}

TEST_F(Shelved, NoMoreIsGivenBackThanADeviceThatIsFullNeeds) {
  DeviceState& d = shelf();
  Shelf::room = 64 * kMega;
  {
    const Ref<Storage> a = make(d, 20 * kMega), b = make(d, 12 * kMega), c = make(d, 24 * kMega);
  }
  const Ref<Storage> large = make(d, 28 * kMega);  // replaces the segment of 24 MiB and uses the 8 MiB that are left
  EXPECT_EQ(Shelf::frees, 1u);
  EXPECT_EQ(stats(d).reserved, 60 * kMega);
  EXPECT_EQ(outcome([&] { make(d, 80 * kMega); }).code, Code::out_of_memory);
}

TEST_F(Shelved, TheOptionMemoryIsALimit) {
  DeviceState& d = shelf({{"memory", std::to_string(32 * kMega)}});
  std::vector<Ref<Storage>> held;
  const Outcome refused = outcome([&] {
    while (held.size() < 100) held.push_back(make(d, kMega));
  });
  EXPECT_EQ(held.size(), 32u);  // in one segment of 20 MiB, then in segments of 1 MiB
  EXPECT_EQ(refused.code, Code::out_of_memory);
  EXPECT_NE(refused.what.find(std::to_string(32 * kMega) + " by the option memory"), std::string::npos) << refused.what;
  EXPECT_LE(stats(d).reserved, 32 * kMega);
  held.resize(10);
  EXPECT_TRUE(outcome([&] { make(d, kMega); }).ok);
}

TEST_F(Shelved, ADeviceWithoutRoomForASegmentHasRoomForABlock) {
  DeviceState& d = shelf();
  Shelf::largest = kMega;
  const Ref<Storage> a = make(d, kMega), b = make(d, 8192);
  EXPECT_EQ(stats(d).reserved, kMega + 8192);
  EXPECT_EQ(outcome([&] { make(d, kMega + 1); }).code, Code::out_of_memory);
}

TEST_F(Shelved, TheLastFreeBlockIsUsedWhateverItWasMeantFor) {
  DeviceState& d = shelf({{"memory", std::to_string(20 * kMega)}});
  const Ref<Storage> a = make(d, 10 * kMega);
  const Ref<Storage> b = make(d, 8192);
  EXPECT_EQ(b->buffer, a->buffer);
}

TEST_F(Shelved, AnAbsurdSizeIsAnErrorAndChangesNothing) {
  DeviceState& d = shelf();
  for (const uint64_t bytes : {~0ull, ~0ull - 4095, 1ull << 63, (1ull << 47) + 1})
    EXPECT_EQ(outcome([&] { make(d, bytes); }).code, Code::out_of_memory) << bytes;
  EXPECT_EQ(Shelf::allocs, 0u);
  EXPECT_EQ(stats(d).reserved, 0u);
}

TEST_F(Shelved, SmallBlocksAreCountedTruly) {
  DeviceState& d = shelf();
  std::vector<Ref<Storage>> held;
  for (int i = 0; i < 1000; ++i) held.push_back(make(d, 100));
  EXPECT_EQ(stats(d).active, 1000 * 128u);
  EXPECT_GE(stats(d).small, stats(d).active);
  EXPECT_EQ(stats(d).cached, stats(d).reserved - stats(d).active);
  const uint64_t chunks = stats(d).small;
  held.clear();
  EXPECT_EQ(stats(d).active, 0u);
  EXPECT_EQ(stats(d).small, chunks);
  for (int i = 0; i < 1000; ++i) held.push_back(make(d, 100));
  EXPECT_EQ(stats(d).small, chunks);
}

// --- With streams.

using Async = Timeline;
INSTANTIATE_TEST_SUITE_P(Blocks, Async, testing::Values(kLargeBytes), size_name);

// Two devices with little memory; each is for one test alone. A process can have only a few streams.
const Pair& own_devices() {
  static const Pair pair = fresh_devices({{"memory", std::to_string(4 * kMega)}});
  return pair;
}

// The chunk of the small blocks is a large block that the compute stream still reads when the chunk is cut.
TEST_P(Async, AnUploadIntoASmallBlockWaitsForTheReadsOfItsChunk) {
  DeviceState& fresh = own_devices().second;
  Ref<Storage> a = test::make(fresh, bytes);
  const Ref<Storage> b = test::make(fresh, bytes);
  const uint64_t place = a->offset;
  upload(*a, 1);
  streams::sync(*fresh.copies);
  hold(fresh, kCompute);
  add(*b, *a, *a);
  a = {};
  const Ref<Storage> small = test::make(fresh, kSmallBytes, true);
  ASSERT_LT(small->offset - place, bytes);
  upload(*small, 5);
  hold(fresh, 0);
  EXPECT_EQ(get(*b), 2);
  EXPECT_EQ(get(*small), 5);
}

TEST_P(Async, BlocksInFlightAreJoinedForTheirHome) {
  d.allocator.trim();
  hold(d, kCompute);
  const uint64_t large = 12 * kMega;  // needs a segment of its own
  const Storage* block;
  {
    const Ref<Storage> whole = test::make(d, large);
    block = whole.get();
    fill(*whole, 1);
  }
  {
    const Ref<Storage> a = test::make(d, large / 2), b = test::make(d, large / 2);
    EXPECT_EQ(a->buffer, b->buffer);
    fill(*a, 2);
    fill(*b, 3);
  }
  const uint64_t allocs = sim().allocs(d.handle);
  const Ref<Storage> again = test::make(d, large);
  EXPECT_EQ(again.get(), block);
  EXPECT_EQ(sim().allocs(d.handle), allocs);
  fill(*again, 4);
  hold(d, 0);
  EXPECT_EQ(get(*again), 4);
}

TEST_P(Async, BlocksInFlightAreNotJoinedForTheCopyStream) {
  d.allocator.trim();
  hold(d, kCompute);
  const uint64_t large = 12 * kMega;
  Pinned in = transfer::pin(d, large);
  set_value(in, 5);
  const plugrad_buffer* buffer;
  {
    const Ref<Storage> a = test::make(d, large / 2), b = test::make(d, large / 2);
    buffer = a->buffer;
    fill(*a, 2);
    fill(*b, 3);
  }
  Ref<Storage> up = test::make(d, large, true);
  EXPECT_NE(up->buffer, buffer);
  transfer::upload(*up, 0, in, large);
  hold(d, 0);
  EXPECT_EQ(get(*up), 5);
  transfer::unpin(in);
}

TEST_P(Async, AJoinedBlockComesAfterTheLastUseOfEachHalf) {
  d.allocator.trim();
  const uint64_t large = 12 * kMega;
  Pinned out = transfer::pin(d, large / 2);
  hold(d, kCopies);
  {
    const Ref<Storage> a = test::make(d, large / 2), b = test::make(d, large / 2);
    fill(*a, 2);
    fill(*b, 3);
    transfer::download(out, *b, 0, large / 2);  // the copy stream is held, so it still reads the second half
  }
  const Ref<Storage> other = test::make(d, large);
  fill(*other, 4);
  hold(d, 0);
  transfer::settle(out);
  EXPECT_EQ(value_of(out), 3);
  streams::sync(*d.copies);
  const Ref<Storage> joined = test::make(d, large);
  fill(*joined, 5);
  EXPECT_EQ(get(*joined), 5);
  transfer::unpin(out);
}

// A plugin that counts the calls of completed.
std::atomic<uint64_t> asked{0};
plugrad_status (*completed_of_sim)(plugrad_stream*, uint64_t*);
plugrad_status completed(plugrad_stream* stream, uint64_t* number) {
  ++asked;
  return completed_of_sim(stream, number);
}
plugrad_backend sim_with(decltype(plugrad_backend::completed) function, const char* name) {
  plugrad_backend table = *plugrad_sim_backend(host());
  completed_of_sim = table.completed;
  table.completed = function;
  table.name = name;
  return table;
}
DeviceState& asking_device() {
  static const plugrad_backend table = sim_with(completed, "asking");
  static const PluginRecord record = add_backend(&table);
  return Device("asking").state();
}

TEST(Polling, IsNotNeededWhereTheHomeReusesWhatItUsed) {
  DeviceState& d = asking_device();
  const Ref<Storage> one = make(d, kLargeBytes);
  fill(*one, 1);
  const auto work = [&] {
    Ref<Storage> a = make(d, kLargeBytes), b = make(d, 3 * kLargeBytes), c = make(d, kMega);
    add(*a, *one, *one);
    fill(*b, 2);
    fill(*c, 3);
  };
  work();
  sim().hold(d.handle, kCompute);
  const uint64_t before = asked;
  for (int i = 0; i < 50; ++i) work();
  EXPECT_EQ(asked, before);
  sim().hold(d.handle, 0);
  streams::sync(*d.compute);
}

TEST(Polling, IsNotNeededWhereBlocksAreKnownToBeIdle) {
  DeviceState& d = asking_device();
  for (int i = 0; i < 20; ++i) {
    Ref<Storage> a = make(d, kLargeBytes, true);
    fill(*a, 1);
    a = {};
    streams::sync(*d.compute);
    const uint64_t before = asked;
    for (int use = 0; use < 10; ++use) make(d, kLargeBytes, true);
    EXPECT_EQ(asked, before);
  }
}

TEST(Polling, FindsOutWhatBecameIdleSince) {
  DeviceState& d = asking_device();
  d.allocator.trim();
  const auto make_in_flight = [&] {
    Ref<Storage> a = make(d, 12 * kMega);
    fill(*a, 1);
    return a.get();
  };
  const Storage* const block = make_in_flight();
  uint64_t number = 0;
  while (number < d.compute->next) completed_of_sim(d.compute->handle, &number);  // completed, but the core does not know
  const uint64_t before = asked;
  EXPECT_EQ(make(d, 12 * kMega, true).get(), block);
  EXPECT_GT(asked, before);
}

// A plugin whose streams report no progress, or report a lower number than before.
std::atomic<uint64_t> most_said{~0ull};
plugrad_status silent(plugrad_stream* stream, uint64_t* number) {
  const plugrad_status status = completed_of_sim(stream, number);
  *number = std::min(*number, most_said.load());
  return status;
}

// Runs in a process of its own, because the device is lost.
void wait_for_a_silent_plugin() {
  static const plugrad_backend table = sim_with(silent, "silent");
  add_backend(&table);
  const Ref<Storage> a = make(Device("silent").state(), kMega);
  fill(*a, 1);
  most_said = 0;
  std::fputs(outcome([&] { streams::verify(*a); }).what.c_str(), stderr);
  std::_Exit(0);
}

TEST(WaitingDeathTest, EndsForAPluginThatNeverSaysWhatIsDone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(wait_for_a_silent_plugin(), testing::ExitedWithCode(0), "silent.*completed stored 0 after a sync");
}

TEST(Limits, HoldForADeviceWithMemoryOfItsOwn) {
  DeviceState& d = own_devices().first;
  const Ref<Storage> a = make(d, 3 * kMega);
  const uint64_t allocs = sim().allocs(d.handle);
  sim().arm(d.handle, PLUGRAD_SIM_OUT_OF_MEMORY, 1);  // stays armed: the core does not call alloc
  const Outcome refused = outcome([&] { make(d, 2 * kMega); });
  EXPECT_EQ(refused.code, Code::out_of_memory);
  EXPECT_NE(refused.what.find("by the option memory"), std::string::npos) << refused.what;
  EXPECT_EQ(sim().allocs(d.handle), allocs);
  sim().arm(d.handle, PLUGRAD_SIM_OUT_OF_MEMORY, 0);
}

}  // namespace
}  // namespace plugrad::test
