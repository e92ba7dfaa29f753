// Batches: their order, their contents with any number of workers, and loops that end early.
#include <plugrad/io/shuffle.hpp>
#include <plugrad/training/data_loader.hpp>
#include <tests/core/expect.hpp>
#include <tests/paths.hpp>

#include <nlohmann/json.hpp>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace plugrad {
namespace {

using test::elements;
using test::throws;
using Numbers = std::vector<double>;

// Sample i is {i, i^2}; `loaded` counts the samples that the loader reads.
struct Squares final : Dataset {
  explicit Squares(int64_t count) : count(count) {}
  int64_t size() const override { return count; }
  Sample item(int64_t i) const override {
    ++*loaded;
    return {scalar(i, DType::i64), full({2}, static_cast<double>(i * i))};
  }
  int64_t count;
  std::shared_ptr<std::atomic<int>> loaded = std::make_shared<std::atomic<int>>(0);
};

// The first tensors of an epoch's batches.
template <class Batches> std::vector<Numbers> firsts(Batches&& batches) {
  std::vector<Numbers> all;
  for (const Batch& batch : batches) all.push_back(elements(batch[0]));
  return all;
}

TEST(DataLoader, GroupsTheSamplesInTheirOrder) {
  DataLoader loader(Squares(5), {.batch_size = 2});
  EXPECT_EQ(loader.size(), 3);
  EXPECT_EQ(firsts(loader), (std::vector<Numbers>{{0, 1}, {2, 3}, {4}}));
  const Batch second = loader.batch(0, 1);
  EXPECT_TRUE(test::close(second[1], {2, 2}, {4, 4, 9, 9}));
  EXPECT_EQ(second[0].dtype(), DType::i64);
}

TEST(DataLoader, LeavesOutASmallLastBatchIfAsked) {
  for (const auto& [count, kept, all] : {std::tuple{5, 2, 3}, {4, 2, 2}, {1, 0, 1}, {0, 0, 0}}) {
    DataLoader some(Squares(count), {.batch_size = 2, .drop_last = true}), each(Squares(count), {.batch_size = 2});
    EXPECT_EQ(some.size(), kept);
    EXPECT_EQ(firsts(some).size(), static_cast<size_t>(kept));
    EXPECT_EQ(some.epoch(7).size(), kept);
    EXPECT_EQ(each.size(), all);
    EXPECT_EQ(firsts(each).size(), static_cast<size_t>(all));
  }
}

// Python's tests compare with the same file.
TEST(DataLoader, HasTheRecordedOrders) {
  const nlohmann::json fixture = nlohmann::json::parse(std::ifstream(test::fixture_path("training.json")));
  ASSERT_GE(fixture["orders"].size(), 4u);
  for (const nlohmann::json& each : fixture["orders"]) {
    const Squares squares{each["count"].get<int64_t>()};
    const DataLoader loader(squares, {.batch_size = each["batch_size"], .shuffle = true, .seed = each["seed"]});
    EXPECT_EQ(firsts(loader.epoch(each["epoch"])), each["batches"].get<std::vector<Numbers>>()) << each;
  }
}

TEST(DataLoader, EachLoopIsTheNextEpoch) {
  DataLoader loader(Squares(10), {.batch_size = 10, .shuffle = true, .seed = 4});
  const std::vector<Numbers> first = firsts(loader), second = firsts(loader);
  EXPECT_NE(first, second);
  EXPECT_EQ(loader.next_epoch(), 2);
  EXPECT_EQ(firsts(loader.epoch(0)), first);
  EXPECT_EQ(firsts(loader.epoch(1)), second);
  loader.set_epoch(1);
  EXPECT_EQ(firsts(loader), second);
  EXPECT_EQ(elements(loader.batch(0, 0)[0]), first[0]);
}

TEST(DataLoader, WorkersLoadTheSameBatches) {
  DataLoader alone(Squares(53), {.batch_size = 4, .shuffle = true, .seed = 1});
  for (const int workers : {1, 2, 3, 4, 40}) {
    for (const int ahead : {1, 3}) {
      const DataLoader loader(
          Squares(53), {.batch_size = 4, .shuffle = true, .seed = 1, .num_workers = workers, .prefetch_factor = ahead});
      EXPECT_EQ(firsts(loader.epoch(2)), firsts(alone.epoch(2))) << workers;
    }
  }
  const DataLoader none(Squares(0), {.num_workers = 2});
  EXPECT_TRUE(firsts(none.epoch(0)).empty());
}

TEST(DataLoader, TakesRowsOfTensorsInOneStep) {
  Tensor x = test::f64({0, 1, 2, 3, 4, 5}, {3, 2}).requires_grad_();
  const Tensor y = test::i64({7, 8, 9});
  for (const int workers : {0, 2}) {
    x.clear_grad();
    const DataLoader loader(TensorDataset({x, y}), {.batch_size = 3, .shuffle = true, .seed = 1, .num_workers = workers});
    const Batch batch = loader.batch(0, 0), again = *loader.epoch(0).begin();
    const std::vector<int64_t> order = io::shuffled_rows(3, 1, 0);
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t row = order[static_cast<size_t>(i)];
      EXPECT_EQ(elements(select(batch[0], 0, i)), elements(select(x, 0, row)));
      EXPECT_EQ(select(again[1], 0, i).item<int64_t>(), 7 + row);
    }
    sum(again[0] * again[0]).backward();
    EXPECT_TRUE(test::close(x.grad(), {3, 2}, {0, 2, 4, 6, 8, 10}));
    const NoGrad unrecorded;
    EXPECT_FALSE((*loader.epoch(0).begin())[0].requires_grad());
  }
  EXPECT_TRUE(test::close(TensorDataset({x, y}).item(1)[0], {2}, {2, 3}));
  EXPECT_TRUE(throws(Code::invalid, {"no tensors"}, [] { TensorDataset({}); }));
  EXPECT_TRUE(throws(Code::invalid, {"rank 0"}, [] { TensorDataset({scalar(1)}); }));
  EXPECT_TRUE(throws(Code::invalid, {"3 and 2 rows"}, [&] { TensorDataset({y, ones({2})}); }));
}

TEST(DataLoader, CollatesAsAsked) {
  const auto longest = [](const std::vector<Sample>& samples) {
    return Batch{full({static_cast<int64_t>(samples.size()), 1}, samples.back()[0].item<double>())};
  };
  for (const int workers : {0, 2}) {
    DataLoader loader(Squares(5), {.batch_size = 3, .num_workers = workers, .collate = longest});
    EXPECT_EQ(firsts(loader), (std::vector<Numbers>{{2, 2, 2}, {4, 4}}));
  }
  EXPECT_TRUE(throws(Code::invalid, {"1 tensors", "2"}, [] { stack_samples({{ones({1})}, {ones({1}), ones({1})}}); }));
  EXPECT_TRUE(throws(Code::invalid, {"no samples"}, [] { stack_samples({}); }));
}

struct Damaged final : Dataset {
  int64_t size() const override { return 20; }
  Sample item(int64_t i) const override {
    if (i == 7) throw Error(Code::io_error, "[7.png] is no picture");
    if (i == 12) throw std::out_of_range("no twelve");
    return {scalar(i, DType::i64)};
  }
};

TEST(DataLoader, NamesTheSampleThatFails) {
  for (const int workers : {0, 1, 3}) {
    const DataLoader loader(Damaged(), {.batch_size = 2, .num_workers = workers});
    EXPECT_TRUE(throws(Code::io_error, {"[DataLoader] sample 7: [7.png] is no picture"}, [&] { firsts(loader.epoch(0)); }));
    EXPECT_TRUE(throws(Code::invalid, {"[DataLoader] sample 12: no twelve"}, [&] { loader.batch(0, 6); }));
    BatchIterator at = loader.epoch(0).begin();
    EXPECT_EQ(elements((*++at)[0]), (Numbers{2, 3}));
    EXPECT_EQ(elements((*++at)[0]), (Numbers{4, 5}));
    EXPECT_THROW(++at, Error);
    EXPECT_TRUE(at == std::default_sentinel);
    EXPECT_THROW(*at, Error);
    EXPECT_EQ(elements((*++at)[0]), (Numbers{8, 9}));  // the loop may go on
  }
}

TEST(DataLoader, KeepsTheExceptionOfADataSet) {
  try {
    DataLoader(Damaged(), {.batch_size = 20, .num_workers = 1}).batch(0, 0);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("sample 7"), std::string::npos);
  }
  try {
    const int64_t twelve = 12;
    Damaged().items({&twelve, 1});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
}

TEST(DataLoader, ALoopMayEndEarly) {
  for (const int workers : {0, 1, 4}) {
    const Squares squares(1000);
    {
      DataLoader loader(squares, {.batch_size = 2, .num_workers = workers, .prefetch_factor = 2});
      for (const Batch& batch : loader)
        if (elements(batch[0])[0] == 4) break;
    }
    const int loaded = *squares.loaded;  // the threads have ended, so the count does not change
    EXPECT_GE(loaded, 6);
    EXPECT_LE(loaded, 6 + 2 * 2 * workers);
  }
}

TEST(DataLoader, AnIteratorOutlivesItsLoader) {
  for (const int workers : {0, 2}) {
    BatchIterator at;
    EXPECT_TRUE(at == std::default_sentinel);
    {
      DataLoader loader(Squares(6), {.batch_size = 2, .num_workers = workers});
      at = loader.begin();
    }
    EXPECT_EQ(elements((*++at)[0]), (Numbers{2, 3}));
    EXPECT_EQ(elements(at->at(0)), (Numbers{2, 3}));
    ++at;
    ++at;
    EXPECT_TRUE(at == std::default_sentinel);
    ++at;  // stays at the end
    EXPECT_TRUE(at == std::default_sentinel);
  }
}

// Counts the samples, and lets a test wait for a count.
struct Counted final : Dataset {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
  };
  int64_t size() const override { return 100; }
  Sample item(int64_t) const override {
    const Sample sample{ones({1})};
    const std::lock_guard lock(state->mutex);
    ++state->count;
    state->changed.notify_all();
    return sample;
  }
  int wait_for(int count) const {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->count >= count; });
    return state->count;
  }
  std::shared_ptr<State> state = std::make_shared<State>();
};

TEST(DataLoader, WorkersAreAheadByNoMoreThanAsked) {
  for (const auto& [workers, factor] : {std::pair{1, 1}, {2, 3}, {4, 2}}) {
    const Counted counted;
    const DataLoader loader(counted, {.num_workers = workers, .prefetch_factor = factor});
    BatchIterator at = loader.epoch(0).begin();
    for (int taken = 1; taken < 10; ++taken, ++at) {
      EXPECT_EQ(counted.wait_for(taken + workers * factor), taken + workers * factor);  // they do load ahead
      std::this_thread::yield();
      EXPECT_EQ(counted.wait_for(0), taken + workers * factor);  // and then they wait
    }
  }
}

TEST(DataLoader, SeveralEpochsAtOnce) {
  DataLoader loader(Squares(20), {.batch_size = 3, .shuffle = true, .num_workers = 2});
  BatchIterator one = loader.begin(), two = loader.begin();
  for (const Batch& batch : loader.epoch(1)) {
    EXPECT_EQ(elements((*two)[0]), elements(batch[0]));
    ++one, ++two;
  }
  EXPECT_TRUE(one == std::default_sentinel && two == std::default_sentinel);
}

TEST(DataLoader, RefusesOptionsOutOfRange) {
  const auto make = [](DataLoaderOptions options) { return [=] { DataLoader(Squares(3), options); }; };
  EXPECT_TRUE(throws(Code::invalid, {"batch_size 0"}, make({.batch_size = 0})));
  EXPECT_TRUE(throws(Code::invalid, {"num_workers -1"}, make({.num_workers = -1})));
  EXPECT_TRUE(throws(Code::invalid, {"prefetch_factor 0"}, make({.prefetch_factor = 0})));
  DataLoader loader(Squares(3));
  EXPECT_TRUE(throws(Code::invalid, {"epoch -1"}, [&] { loader.epoch(-1); }));
  EXPECT_TRUE(throws(Code::invalid, {"epoch -2"}, [&] { loader.set_epoch(-2); }));
  EXPECT_TRUE(throws(Code::invalid, {"batch 3", "has 3"}, [&] { loader.batch(0, 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"null"}, [] { DataLoader(std::shared_ptr<const Dataset>()); }));
}

}  // namespace
}  // namespace plugrad
