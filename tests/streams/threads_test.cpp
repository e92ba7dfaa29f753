// Many threads, and random work that is compared with a model.
#include <tests/streams/rig.hpp>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

namespace plugrad::test {
namespace {
using Threads = Timeline;
INSTANTIATE_TEST_SUITE_P(Blocks, Threads, testing::Values(kSmallBytes, kLargeBytes), size_name);

TEST_P(Threads, AThreadInADownloadHoldsNobodyUp) {
  const Ref<Storage> a = make(), b = make();
  hold(d, kCompute);
  fill(*a, 1);
  const uint64_t before = d.downloads;
  std::thread reader([&] { EXPECT_EQ(get(*a), 1); });
  while (d.downloads == before) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) fill(*b, static_cast<float>(i));
  streams::poll(*d.copies);
  hold(d, 0);
  reader.join();
  EXPECT_EQ(get(*b), 19);
}

TEST_P(Threads, SeveralOnOneStream) {
  constexpr int kThreads = 4, kAdds = 100;
  const Ref<Storage> one = make();
  fill(*one, 1);
  std::vector<std::thread> all;
  for (int t = 0; t < kThreads; ++t)
    all.emplace_back([&, t] {
      const Ref<Storage> a = make(), b = make(), copied = make();
      fill(*a, 0);
      upload(*b, static_cast<float>(t));
      for (int i = 0; i < kAdds; ++i) add(*a, *a, i % 2 ? *b : *one);
      transfer::between(*copied, 0, *a, 0, bytes);
      EXPECT_EQ(get(*a), kAdds / 2 * (t + 1));
      EXPECT_EQ(get(*copied), kAdds / 2 * (t + 1));
    });
  for (std::thread& t : all) t.join();
}

TEST_P(Threads, QueuesRunFullAndNobodyIsStuck) {
  const Ref<Storage> a = make(), b = make(), c = make();
  fill(*a, 0);
  fill(*b, 1);
  fill(*c, 5);
  std::thread other([&] {
    const Ref<Storage> mine = make();
    for (int i = 0; i < 30; ++i) {
      upload(*mine, 2);
      EXPECT_EQ(get(*c), 5);
      EXPECT_EQ(get(*mine), 2);
    }
  });
  for (int i = 0; i < 3000; ++i) add(*a, *a, *b);
  other.join();
  EXPECT_EQ(get(*a), 3000);
}

// The first thread that syncs clears the failure on the device, but every other thread still sees it.
TEST_P(Threads, AFailureIsSeenByAllWhoLook) {
  constexpr int kRounds = 200;
  const Ref<Storage> a = make();
  int seen = 0, told = 0;
  for (int i = 0; i < kRounds; ++i) {
    sim().arm(d.handle, PLUGRAD_SIM_INDEX_ERROR, 1);
    fill(*a, 1);
    std::atomic<bool> go{false};
    std::thread other([&] {
      while (!go) std::this_thread::yield();
      outcome([&] { streams::sync(*d.compute); });
    });
    go = true;
    seen += outcome([&] { streams::verify(*a); }).code == Code::index_error;
    other.join();
    told += outcome([&] { get(*a); }).code == Code::index_error;
  }
  EXPECT_EQ(seen, kRounds);
  EXPECT_EQ(told, kRounds);
}

// --- Random work.

struct Model {
  explicit Model(uint64_t seed) : random(seed) {}
  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random() % below); }
  std::mt19937_64 random;
  std::vector<Ref<Storage>> x;
  std::vector<float> value;
};

class Random : public Timeline {
 protected:
  static constexpr uint32_t kStorages = 6, kSteps = 600;
  DeviceState& device_of(uint32_t i) { return i % 2 ? e : d; }

  void step(Model& m, float fresh) {
    const uint32_t a = m.pick(kStorages), b = a % 2 + 2 * m.pick(3), c = a % 2 + 2 * m.pick(3), other = m.pick(kStorages);
    switch (m.pick(8)) {
      case 0:
      case 1:
      case 2:
        add(*m.x[a], *m.x[b], *m.x[c]);
        m.value[a] = m.value[b] + m.value[c];
        break;
      case 3:
        upload(*m.x[a], fresh);
        m.value[a] = fresh;
        break;
      case 4: EXPECT_EQ(get(*m.x[a]), m.value[a]); break;
      case 5: through_pinned(m, a); break;
      case 6:
        if (a == other) break;
        transfer::between(*m.x[a], 0, *m.x[other], 0, bytes);
        m.value[a] = m.value[other];
        break;
      default: replace(m, a, fresh);
    }
    if (std::fabs(m.value[a]) > 1e6f) {
      fill(*m.x[a], 1);
      m.value[a] = 1;
    }
  }
  void through_pinned(Model& m, uint32_t a) {
    Pinned out = transfer::pin(device_of(a), bytes);
    transfer::download(out, *m.x[a], 0, bytes);
    transfer::settle(out);
    EXPECT_EQ(value_of(out), m.value[a]);
    transfer::unpin(out);
  }
  void replace(Model& m, uint32_t a, float fresh) {
    m.x[a] = {};
    m.x[a] = test::make(device_of(a), bytes, m.pick(2));
    fill(*m.x[a], fresh);
    m.value[a] = fresh;
    if (m.pick(8) == 0) device_of(a).allocator.trim();
  }
};
INSTANTIATE_TEST_SUITE_P(Blocks, Random, testing::Values(kSmallBytes, kLargeBytes), size_name);

TEST_P(Random, WorkAgreesWithAModel) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim().set_latency(nullptr, seed == 3 ? 0 : 20);
    Model m(seed);
    for (uint32_t i = 0; i < kStorages; ++i) {
      m.x.push_back(make(device_of(i)));
      m.value.push_back(static_cast<float>(i));
      fill(*m.x[i], static_cast<float>(i));
    }
    for (uint32_t i = 0; i < kSteps && !HasFailure(); ++i) step(m, static_cast<float>(i));
    for (uint32_t i = 0; i < kStorages; ++i) EXPECT_EQ(get(*m.x[i]), m.value[i]);
  }
}

}  // namespace
}  // namespace plugrad::test
