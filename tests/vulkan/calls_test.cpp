// Barriers, waits and batches of the Vulkan backend, and the errors that a program gets from a driver that fails. The
// backend is linked in.
#include <backends/vulkan/cache_file.hpp>
#include <backends/vulkan/driver.hpp>
#include <plugrad/backends/vulkan.hpp>
#include <plugrad/plugrad.hpp>
#include <tests/vulkan/recorder.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <filesystem>

namespace plugrad::test {
namespace {

bool is_submission(const VulkanCall& call) { return call.kind == VulkanCall::submit; }

class Calls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Recorder::get();
    folder() = std::filesystem::temp_directory_path() / ("plugrad-vulkan-calls-" + std::to_string(getpid()));
    set_device_options("vulkan", {{"cache", folder().string()}});
    record() = add_backend(plugrad_vulkan_backend(host()));
    if (has_device("vulkan")) cache().write(earlier());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder()); }
  void SetUp() override {
    if (!has_device("vulkan")) GTEST_SKIP() << "no Vulkan device: " << record().reason;
    device_ = Device("vulkan");
    device_.sync();
    Recorder::get().take();
  }
  void TearDown() override {
    Recorder::get().fail_submissions(VK_SUCCESS, 0);
    Recorder::get().fail_allocations(VK_SUCCESS, 0);
    Recorder::get().hidden_answers = 0;
  }
  static PluginRecord& record() {
    static PluginRecord made;
    return made;
  }
  static std::filesystem::path& folder() {
    static std::filesystem::path made;
    return made;
  }
  static vulkan::CacheFile cache() { return {folder().c_str(), vulkan::Driver::get().devices().at(0).properties}; }
  // Pipeline data as an earlier process could have stored it.
  static std::vector<char> earlier() {
    const VkPhysicalDeviceProperties& p = vulkan::Driver::get().devices().at(0).properties;
    std::vector<char> data(40);
    const uint32_t header[] = {32, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, p.vendorID, p.deviceID};
    std::memcpy(data.data(), header, sizeof header);
    std::memcpy(data.data() + sizeof header, p.pipelineCacheUUID, VK_UUID_SIZE);
    return data;
  }
  // Returns the calls that f makes; submits all recorded work before f and after it.
  template <class F> std::vector<VulkanCall> calls_of(F f) {
    device_.sync();
    Recorder::get().take();
    f();
    device_.sync();
    return Recorder::get().take();
  }
  template <class F> std::string letters_of(F f) { return Recorder::letters(calls_of(f)); }
  Tensor some(const Shape& shape, float value = 1) const { return full(shape, value, DType::f32, device_); }
  // A tensor of indices whose values the host does not check.
  Tensor index(std::vector<int64_t> values) const {
    const auto n = static_cast<int64_t>(values.size());
    return to(Tensor::from(values, {n}, Device("cpu")), device_);
  }

  Device device_;
};

// Must be the first test: it checks the calls that opened the device.
TEST_F(Calls, ADriverGetsWhatAnEarlierProcessStoredAndWhatItCompilesIsStored) {
  EXPECT_EQ(Recorder::get().cache_given, earlier());
  const Tensor y = tanh(some({100}));
  device_.sync();
  std::vector<char> expected = earlier();
  expected.resize(32);
  expected.insert(expected.end(), std::begin(Recorder::kKept), std::end(Recorder::kKept));
  EXPECT_EQ(cache().read(), expected);
}

TEST_F(Calls, AnOpWaitsForTheOnesBeforeAndTheHostForTheBatch) {
  const Tensor x = some({100});
  Tensor y;
  EXPECT_EQ(letters_of([&] { y = exp(x); }), "BDHS");
  EXPECT_EQ(letters_of([&] { y = sqrt(exp(x)); }), "BDBDHS");
}

TEST_F(Calls, TheSecondPassOfASumWaitsForTheFirst) {
  const Tensor x = some({3 << 18});
  Tensor y;
  EXPECT_EQ(letters_of([&] { y = sum(x); }), "BDBDHS");
  EXPECT_EQ(y.item<float>(), 3 << 18);
}

TEST_F(Calls, ALongProductIsCutIntoPartsThatWaitForEachOther) {
  const Tensor a = some({2, 10000}), b = some({10000, 3});
  Tensor c;
  EXPECT_EQ(letters_of([&] { c = matmul(a, b); }), "BDBDBDHS");
  EXPECT_EQ(c.to_vector<float>(), std::vector<float>(6, 10000.0f));
}

TEST_F(Calls, ABatchTakesManyOpsWhileTheDeviceIsBusy) {
  const Tensor x = some({1 << 18});
  Tensor y = x;
  const std::vector<VulkanCall> calls = calls_of([&] {
    for (int i = 0; i < 100; ++i) y = y + x;
  });
  const auto submissions = std::ranges::count_if(calls, is_submission);
  EXPECT_LE(submissions, 100 / 4);
  EXPECT_GE(submissions, 100 / 32);
  EXPECT_EQ(y.to_vector<float>().back(), 101.0f);
}

// The copy of a result runs on another stream, whose submission waits for the submission that computed the result.
TEST_F(Calls, ACopyWaitsForTheOpOnAnotherStream) {
  const Tensor x = some({1000});
  device_.sync();
  Recorder::get().take();
  Recorder::get().hidden_answers = 4;
  (void)(x * x).to_vector<float>();
  const std::vector<VulkanCall> calls = Recorder::get().take();
  const auto computed = std::ranges::find_if(calls, is_submission);
  ASSERT_NE(computed, calls.end());
  const auto copied = std::ranges::find_if(calls, [&](const VulkanCall& c) {
    return is_submission(c) && std::ranges::any_of(c.waits, [&](const auto& wait) {
             return wait.first == computed->signals && wait.second <= computed->value && wait.second > 0;
           });
  });
  const bool same_stream = std::ranges::any_of(
      calls, [&](const VulkanCall& c) { return c.kind == VulkanCall::copy && c.commands == computed->commands; });
  EXPECT_TRUE(copied != calls.end() || same_stream) << Recorder::letters(calls);
}

TEST_F(Calls, AFullDeviceIsAnErrorAndTheNextOneGoes) {
  Recorder::get().fail_allocations(VK_ERROR_OUT_OF_DEVICE_MEMORY, 1000);
  try {
    some({100 << 20});
    FAIL() << "no memory was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory) << error.what();
    EXPECT_NE(std::string(error.what()).find("no device memory is left"), std::string::npos) << error.what();
  }
  Recorder::get().fail_allocations(VK_SUCCESS, 0);
  EXPECT_EQ(sum(some({100})).item<float>(), 100.0f);
}

// The backend accepted the op, so the op runs once, when the submission is tried again.
TEST_F(Calls, ARefusedSubmissionIsTriedAgain) {
  Tensor x = some({100});
  device_.sync();
  Recorder::get().fail_submissions(VK_ERROR_OUT_OF_HOST_MEMORY, 1);
  for (int i = 0; i < 10; ++i) x.add_(x);
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(100, 1024.0f));
  EXPECT_EQ(Recorder::get().failing_submissions, 0);
}

// About 130 dispatches, whose parameters need more than one block.
TEST_F(Calls, ALongOpIsSubmittedWholeOrNotAtAll) {
  constexpr int64_t kMany = 1 << 21;
  const Tensor ones = full({kMany}, 1, DType::i64, device_), index = zeros({kMany}, DType::i64, device_);
  const auto sum_of_all = [&] { return scatter_add(zeros({1}, DType::i64, device_), 0, index, ones); };
  Tensor y;
  const std::string letters = letters_of([&] { y = sum_of_all(); });
  EXPECT_EQ(std::ranges::count(letters, 'S'), 1) << letters;
  EXPECT_GT(std::ranges::count(letters, 'D'), kMany >> 14);
  EXPECT_EQ(y.item<int64_t>(), kMany);
  device_.sync();
  y = sum_of_all();
  Recorder::get().fail_submissions(VK_ERROR_OUT_OF_HOST_MEMORY, 1);
  try {
    (void)y.item<int64_t>();
    FAIL() << "no submission was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::out_of_memory) << error.what();
    EXPECT_NE(std::string(error.what()).find("vkQueueSubmit"), std::string::npos) << error.what();
  }
  EXPECT_EQ(y.item<int64_t>(), kMany);
}

// The batch's memory runs out in the middle of the op, which the host tries again.
TEST_F(Calls, AnOpThatIsRefusedInItsMiddleRunsOnce) {
  constexpr int64_t kMany = 1 << 22;
  const Tensor ones = full({kMany}, 1, DType::i64, device_), index = zeros({kMany}, DType::i64, device_);
  const auto sum_of = [&](int64_t n) {
    return scatter_add(zeros({1}, DType::i64, device_), 0, slice(index, 0, 0, n), slice(ones, 0, 0, n));
  };
  sum_of(100);      // from here on only the batch allocates memory
  some({1 << 20});  // the core can release this memory and then tries again
  device_.sync();
  Recorder::get().fail_allocations(VK_ERROR_OUT_OF_DEVICE_MEMORY, 1);
  const Tensor y = sum_of(kMany);
  EXPECT_EQ(Recorder::get().failing_allocations, 0);
  EXPECT_EQ(y.item<int64_t>(), kMany);
}

TEST_F(Calls, AnIndexOutOfRangeIsReportedOnceAndTheDeviceGoesOn) {
  const Tensor x = some({10});
  for (int i = 0; i < 2; ++i) {
    try {
      (void)sum(gather(x, 0, index({3, 12}))).item<float>();
      FAIL() << "the index was not noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::index_error) << error.what();
      EXPECT_NE(std::string(error.what()).find("gather: an index"), std::string::npos) << error.what();
    }
    EXPECT_EQ(sum(gather(x, 0, index({3, 9}))).item<float>(), 2.0f);
  }
}

// --- Compiled steps.

Tensor chain(const Tensor& x) { return sqrt(matmul(exp(x), x)); }

TEST_F(Calls, ACompiledStepIsRecordedOnceAndSubmittedAgain) {
  const Tensor x = some({8, 8}), y = some({8, 8}, 2);
  auto step = compile(chain, {.fuse = false});
  step(x);
  Tensor of_x, of_y;
  EXPECT_EQ(letters_of([&] { of_x = step(x); }), "BDBDBDHS");
  EXPECT_EQ(letters_of([&] { of_x = step(x); }), "S");
  EXPECT_EQ(letters_of([&] { of_y = step(y); }), "S") << "other operands are other parameters";
  EXPECT_EQ(of_x.to_vector<float>(), chain(x).to_vector<float>());
  EXPECT_EQ(of_y.to_vector<float>(), chain(y).to_vector<float>());
}

TEST_F(Calls, ACompiledStepIsSubmittedAfterWhatCameBefore) {
  const Tensor x = some({8, 8});
  auto step = compile(chain, {.fuse = false});
  step(x);
  step(x);
  Tensor y;
  EXPECT_EQ(letters_of([&] { y = step(x + 1); }), "BDHSS");
  EXPECT_EQ(y.to_vector<float>(), chain(x + 1).to_vector<float>());
}

// Each run in flight needs a command buffer of its own. There are four command buffers.
TEST_F(Calls, CompiledStepsInFlightHaveTheirOwnParameters) {
  auto step = compile(chain, {.fuse = false});
  std::vector<Tensor> given, results;
  for (int i = 0; i < 12; ++i) given.push_back(some({40, 40}, static_cast<float>(i)));
  step(given[0]);
  Recorder::get().hidden_answers = 3;
  for (const Tensor& x : given) results.push_back(step(x));
  for (size_t i = 0; i < given.size(); ++i)
    EXPECT_EQ(results[i].to_vector<float>(), chain(given[i]).to_vector<float>()) << i;
}

TEST_F(Calls, ACompiledStepThatTheDriverRefusesRunsOpByOp) {
  Tensor x = some({100});
  auto step = compile(
      [&] {
        x.add_(x);
        x.add_(x);
      },
      {.fuse = false});
  step();
  step();
  device_.sync();
  Recorder::get().fail_submissions(VK_ERROR_OUT_OF_HOST_MEMORY, 1);
  step();
  EXPECT_EQ(Recorder::get().failing_submissions, 0);
  step();
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(100, 256.0f));
}

TEST_F(Calls, AnIndexOutOfRangeInACompiledStepIsReported) {
  const Tensor x = some({4, 3}), bad = index({1, 4}), good = index({1, 2});
  auto step = compile([&](const Tensor& rows) { return exp(index_select(x * 2, 0, rows)); }, {.fuse = false});
  step(good);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(step(good).to_vector<float>(), exp(some({2, 3}, 2)).to_vector<float>());
    const Tensor lost = step(bad);
    try {
      (void)lost.to_vector<float>();
      FAIL() << "no failure";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("an index is out of range"), std::string::npos) << error.what();
    }
  }
}

// Must be the last test: afterwards the device is lost for this process.
TEST_F(Calls, ZLostDeviceSaysSoFromThenOn) {
  const Tensor x = some({10});
  device_.sync();
  Recorder::get().fail_submissions(VK_ERROR_DEVICE_LOST, 1);
  for (int i = 0; i < 2; ++i) {
    try {
      (void)(x + x).to_vector<float>();
      FAIL() << "the loss was not noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::device_lost) << error.what();
    }
  }
}

}  // namespace
}  // namespace plugrad::test
