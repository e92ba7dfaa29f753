// Snapshots of a device's memory name the tensors that hold the memory.
#include <tests/core/expect.hpp>

#include <plugrad/autograd/memory.hpp>
#include <plugrad/runtime/profiler.hpp>

#include <algorithm>
#include <numeric>
#include <thread>

namespace plugrad::test {
namespace {

// Records memory for its lifetime.
struct Recorded {
  explicit Recorded(std::function<std::string()> where = {}) { record_memory(true, std::move(where)); }
  ~Recorded() { record_memory(false); }
};

uint64_t sum_of(const MemorySnapshot& snapshot) {
  uint64_t sum = 0;
  for (const MemoryEntry& each : snapshot.entries) sum += each.bytes;
  return sum;
}

const MemoryEntry* find(const MemorySnapshot& snapshot, const Shape& shape, MemoryKind kind) {
  const auto found = std::ranges::find_if(snapshot.entries,
                                          [&](const MemoryEntry& each) { return each.kind == kind && each.shape == shape; });
  return found == snapshot.entries.end() ? nullptr : &*found;
}

TEST(Memory, ASnapshotNamesParametersGradientsAndSavedValues) {
  const nn::Linear layer(30, 70);
  const Tensor x = rand({50, 30});
  const Recorded recorded;
  const Tensor y = tanh(layer(x));
  MemorySnapshot snapshot = memory_snapshot(default_device(), {{"weight", layer.weight}, {"bias", layer.bias}});
  EXPECT_EQ(sum_of(snapshot), snapshot.total);
  const MemoryEntry* weight = find(snapshot, {70, 30}, MemoryKind::parameter);
  ASSERT_TRUE(weight) << snapshot.table();
  EXPECT_EQ(weight->name, "weight");
  EXPECT_EQ(weight->op, "") << "it is older than the recording";
  const MemoryEntry* saved = find(snapshot, {50, 70}, MemoryKind::saved);
  ASSERT_TRUE(saved) << snapshot.table();
  EXPECT_EQ(saved->op, "tanh");
  EXPECT_EQ(saved->saved_by, "tanh");
  EXPECT_EQ(saved->dtype, "f32");
  EXPECT_GE(saved->bytes, 50u * 70u * 4u);
  EXPECT_FALSE(find(snapshot, {70, 30}, MemoryKind::gradient));
  sum(y).backward();
  snapshot = memory_snapshot(default_device(), {{"weight", layer.weight}, {"bias", layer.bias}});
  EXPECT_EQ(sum_of(snapshot), snapshot.total);
  const MemoryEntry* gradient = find(snapshot, {70, 30}, MemoryKind::gradient);
  if (!gradient) gradient = find(snapshot, {30, 70}, MemoryKind::gradient);
  ASSERT_TRUE(gradient) << snapshot.table();
  EXPECT_EQ(gradient->name, "weight.grad");
  EXPECT_FALSE(gradient->gradient.empty());
  EXPECT_FALSE(find(snapshot, {50, 70}, MemoryKind::saved)) << "the pass released it";
}

TEST(Memory, ThreadsMayShareParameters) {
  const nn::Linear layer(3, 2);
  const Tensor x = rand({4, 3});
  const Recorded recorded;
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) sum(layer(x)).backward();
  };
  std::thread other(work);
  work();
  other.join();
  const MemorySnapshot snapshot = memory_snapshot(default_device());
  EXPECT_TRUE(find(snapshot, {2, 3}, MemoryKind::parameter)) << snapshot.table();
  EXPECT_EQ(sum_of(snapshot), snapshot.total);
}

TEST(Memory, DroppedMemoryLeavesTheSnapshot) {
  const Recorded recorded;
  for (const Shape& shape : {Shape{3}, Shape{20, 1000}}) {
    Tensor x = exp(rand(shape));
    EXPECT_TRUE(find(memory_snapshot(default_device()), shape, MemoryKind::other)) << shape;
    x = {};
    const MemorySnapshot snapshot = memory_snapshot(default_device());
    EXPECT_FALSE(find(snapshot, shape, MemoryKind::other)) << shape << snapshot.table();
    EXPECT_EQ(sum_of(snapshot), snapshot.total);
  }
}

TEST(Memory, EntriesSayWhereTheyWereMade) {
  int line = 0;
  const Recorded recorded([&] { return "program.cpp:" + std::to_string(++line); });
  const ProfileRange range("forward");
  const Tensor x = of(DType::f32, spread(77, -1, 1), {7, 11}), y = exp(x);
  const MemorySnapshot snapshot = memory_snapshot(default_device());
  const auto made = [&](const std::string& op) {
    const auto is = [&](const MemoryEntry& each) { return each.op == op && each.shape == Shape{7, 11}; };
    return std::ranges::find_if(snapshot.entries, is);
  };
  ASSERT_NE(made("exp"), snapshot.entries.end()) << snapshot.table();
  EXPECT_EQ(made("exp")->range, "forward");
  EXPECT_EQ(made("exp")->where.find("program.cpp:"), 0u);
  EXPECT_NE(snapshot.table().find("exp in forward, program.cpp:"), std::string::npos) << snapshot.table();
}

TEST(Memory, AnUpdateInPlaceIsNoOrigin) {
  Tensor x = rand({5, 5}), no_velocity;
  const Recorded recorded;
  sgd_step(x, no_velocity, ones({5, 5}), {.rate = 0.1});
  const MemorySnapshot snapshot = memory_snapshot(default_device());
  const MemoryEntry* entry = find(snapshot, {5, 5}, MemoryKind::other);
  ASSERT_TRUE(entry) << snapshot.table();
  EXPECT_EQ(entry->op, "");
}

TEST(Memory, ASnapshotNeedsTheRecording) {
  EXPECT_FALSE(records_memory());
  EXPECT_TRUE(throws(Code::invalid, {"[memory_snapshot]", "record_memory()"}, [] { memory_snapshot(default_device()); }));
  {
    const Profiler profile({.memory = true});
    EXPECT_TRUE(records_memory());
  }
  EXPECT_FALSE(records_memory());
}

TEST(Memory, TheTableSumsUpKindsAndEqualEntries) {
  const Recorded recorded;
  std::vector<Tensor> all;
  for (int i = 0; i < 3; ++i) all.push_back(zeros({40, 40}));
  const std::string text = memory_snapshot(default_device()).table(100);
  EXPECT_NE(text.find(default_device().name()), std::string::npos);
  for (const char* each : {"kind", "pieces", "bytes", "share", "saved by", "made by", "(40, 40)", "fill"})
    EXPECT_NE(text.find(each), std::string::npos) << each << text;
}

}  // namespace
}  // namespace plugrad::test
