// Concurrency: first uses, a shared device, handles passed between threads, parallel passes. Also for the thread sanitizer.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/layers.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>
#include <plugrad/runtime/runtime.hpp>

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <mutex>
#include <thread>

namespace plugrad {
namespace {

constexpr int kThreads = 4;

// Runs body(i) on kThreads threads that start together. An exception fails the test.
void together(const std::function<void(int)>& body) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        body(i);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& each : threads) each.join();
}

bool consistent(const MemoryStats& m) { return m.reserved == m.active + m.cached && m.peak >= m.active; }

std::vector<double> ramp(int64_t count, double from) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i) / 8;
  return values;
}

TEST(Threads, OpenADeviceOnceWhoeverComesFirst) {
  const std::string name = default_device().name() == "reference:0" ? "cpu" : "reference";
  if (!has_device(name)) GTEST_SKIP() << "no second host-memory device: " << name << " is not built";
  std::vector<Device> seen(kThreads);
  together([&](int i) {
    seen[static_cast<size_t>(i)] = Device(name);
    EXPECT_EQ(full({3}, i, DType::f32, seen[static_cast<size_t>(i)]).to_vector<float>()[2], static_cast<float>(i));
  });
  for (const Device& each : seen) EXPECT_EQ(each, seen[0]);
}

TEST(Threads, MeetOpsForTheFirstTimeTogether) {
  together([](int i) {
    const Tensor a = Tensor::from(ramp(60, i), {6, 10}), b = Tensor::from(ramp(60, 1), {6, 10});
    for (int round = 0; round < 20; ++round) {
      const double expected = (static_cast<double>(i) + 59.0 / 8) * (1 + 59.0 / 8);
      EXPECT_DOUBLE_EQ(mul(a, b).to_vector<double>().back(), expected);
      EXPECT_DOUBLE_EQ(max(sub(a, b)).item<double>(), static_cast<double>(i) - 1);
      EXPECT_DOUBLE_EQ(sum(full({6, 10}, i, DType::f64)).item<double>(), 60.0 * i);
      EXPECT_EQ(cast(exp(mul(a, 0)), DType::f32).to_vector<float>().back(), 1.0f);
      EXPECT_EQ(matmul(full({4, 5}, 1, DType::f32), full({5, 3}, i)).to_vector<float>()[11], static_cast<float>(5 * i));
    }
  });
}

TEST(Threads, ComputeOnOneDeviceWithBlocksOfAllSizes) {
  together([](int i) {
    for (const int64_t count : {1, 100, 5000, 70000, 300000}) {
      Tensor x = full({count}, i + 1, DType::f64);
      for (int round = 0; round < 8; ++round) x = add(mul(x, 2), -static_cast<double>(i + 1));
      EXPECT_EQ(x.to_vector<double>().back(), static_cast<double>(i + 1));
      EXPECT_DOUBLE_EQ(mean(x).item<double>(), static_cast<double>(i + 1));
    }
  });
}

TEST(Threads, PassTensorsToEachOther) {
  constexpr int kRounds = 300;
  std::mutex mutex;
  std::vector<Tensor> pool(16, full({7}, 1, DType::f64));
  together([&](int i) {
    unsigned state = static_cast<unsigned>(i) * 2654435761u + 1;
    for (int round = 0; round < kRounds; ++round) {
      state = state * 1664525 + 1013904223;
      Tensor mine;
      {
        const std::lock_guard lock(mutex);
        mine = pool[state >> 28];
      }
      Tensor next = sub(mul(mine, 3), mul(mine, 2));
      const std::lock_guard lock(mutex);
      std::swap(pool[state >> 24 & 15], next);
    }
  });
  for (const Tensor& each : pool) EXPECT_EQ(each.to_vector<double>(), std::vector<double>(7, 1));
}

TEST(Threads, CopyAndDropOneHandle) {
  const Tensor shared = Tensor::from(ramp(1000, 0), {1000}).requires_grad_();
  together([&](int) {
    for (int round = 0; round < 2000; ++round) {
      const Tensor copy = shared;
      const Tensor more = copy;
      ASSERT_TRUE(more.is_same(shared));
      if (round % 100 == 0) {
        EXPECT_EQ(add(more, 1).to_vector<double>()[8], 2);
      }
    }
  });
}

TEST(Threads, RunPassesSideBySideOverSharedLeaves) {
  const Tensor w = Tensor::from(ramp(6, 1), {2, 3}).requires_grad_(), b = Tensor::from(ramp(3, 0), {3}).requires_grad_();
  constexpr int kRounds = 50;
  together([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      const Tensor x = full({4, 2}, 1, DType::f64);
      sum(add(matmul(x, w), b)).backward();
    }
  });
  EXPECT_EQ(w.grad().to_vector<double>(), std::vector<double>(6, 4.0 * kRounds * kThreads));
  EXPECT_EQ(b.grad().to_vector<double>(), std::vector<double>(3, 4.0 * kRounds * kThreads));
}

TEST(Threads, InOneGraphAtOnceOneGetsAnErrorAndNothingIsLost) {
  Tensor x = full({}, 2, DType::f64).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 3000; ++i) y = add(y, 0);
  std::atomic<int> through{0}, refused{0};
  together([&](int) {
    for (int round = 0; round < 5; ++round) {
      try {
        y.backward({}, {.retain_graph = true});
        ++through;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("another backward pass"), std::string::npos) << error.what();
        ++refused;
      }
    }
  });
  EXPECT_EQ(through + refused, 5 * kThreads);
  EXPECT_GE(through, 1);
  EXPECT_EQ(x.grad().item<double>(), static_cast<double>(through));
  x.clear_grad();
  y.backward();
  EXPECT_EQ(x.grad().item<double>(), 1);
}

TEST(Threads, HaveARecordingModeEach) {
  const Tensor x = full({}, 2, DType::f64).requires_grad_();
  together([&](int i) {
    for (int round = 0; round < 100; ++round) {
      if (i % 2) {
        EXPECT_TRUE(mul(x, 2).requires_grad());
      } else {
        const NoGrad unrecorded;
        EXPECT_FALSE(mul(x, 2).requires_grad());
      }
    }
  });
}

TEST(Threads, ReadOneModuleAtOnce) {
  manual_seed(3);
  const nn::Linear linear(8, 4, true, DType::f64);
  const Tensor x = Tensor::from(ramp(16, 0), {2, 8});
  const std::vector<double> expected = linear(x).to_vector<double>();
  together([&](int) {
    for (int round = 0; round < 50; ++round) EXPECT_EQ(linear(x).to_vector<double>(), expected);
  });
}

TEST(Threads, DrawNumbersOfWhichNoneComesTwice) {
  manual_seed(11);
  std::vector<std::vector<double>> drawn(kThreads);
  together([&](int i) {
    for (int round = 0; round < 50; ++round) {
      const std::vector<double> some = rand({10}, DType::f64).to_vector<double>();
      drawn[static_cast<size_t>(i)].insert(drawn[static_cast<size_t>(i)].end(), some.begin(), some.end());
    }
  });
  std::vector<double> all;
  for (const auto& each : drawn) all.insert(all.end(), each.begin(), each.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(Threads, LogWhileTheSinkChanges) {
  std::atomic<int> lines{0};
  set_log_level(LogLevel::info);
  set_log_sink([&](LogLevel, std::string_view) { ++lines; });
  together([&](int i) {
    for (int round = 0; round < 200; ++round) {
      if (i == 0 && round % 10 == 0) set_log_sink([&](LogLevel, std::string_view) { ++lines; });
      log(LogLevel::info, "a line");
    }
  });
  EXPECT_EQ(lines, 200 * kThreads);
  set_log_sink({});
  set_log_level(LogLevel::warning);
}

TEST(Threads, CountKernelsOfThreadsThatEndedToo) {
  const Device device = default_device();
  const Tensor x = full({3}, 1);
  add(x, x);
  const uint64_t before = device.counters().kernels;
  together([&](int) {
    for (int round = 0; round < 100; ++round) add(x, x);
  });
  EXPECT_EQ(device.counters().kernels, before + 100 * kThreads);
}

TEST(Threads, TrimAndReadStatisticsMeanwhile) {
  const Device device = default_device();
  together([&](int i) {
    for (int round = 0; round < 60; ++round) {
      if (i == 0) {
        device.trim();
      } else if (i == 1) {
        EXPECT_TRUE(consistent(device.memory()));
      } else {
        EXPECT_EQ(add(full({20000}, i), 1).to_vector<float>()[19999], static_cast<float>(i + 1));
      }
    }
  });
}

}  // namespace
}  // namespace plugrad
