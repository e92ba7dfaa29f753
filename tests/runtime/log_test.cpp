// The log and the policies that the process sets; options_test.cpp tests their environment variables.
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/sdk/backend.hpp>

#include <gtest/gtest.h>
#include <algorithm>
#include <string>
#include <vector>

namespace plugrad {
namespace {

// Collects lines during its lifetime.
class Lines {
 public:
  explicit Lines(LogLevel level) {
    set_log_level(level);
    set_log_sink([this](LogLevel at, std::string_view line) { all.emplace_back(at, line); });
  }
  ~Lines() {
    set_log_sink({});
    set_log_level(LogLevel::warning);
  }
  std::vector<std::pair<LogLevel, std::string>> all;
};

TEST(Log, DropsLinesBelowItsLevel) {
  constexpr LogLevel kLevels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error};
  for (int from = 0; from < 4; ++from) {
    const Lines lines(kLevels[from]);
    EXPECT_EQ(log_level(), kLevels[from]);
    for (const LogLevel level : kLevels) log(level, "line");
    ASSERT_EQ(lines.all.size(), static_cast<size_t>(4 - from));
    EXPECT_EQ(lines.all[0].first, kLevels[from]);
  }
  const Lines none(LogLevel::off);
  for (const LogLevel level : {LogLevel::debug, LogLevel::error, LogLevel::off}) log(level, "line");
  EXPECT_TRUE(none.all.empty());
}

TEST(Log, ASinkMayLogAndReplaceItself) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view line) {
    ++calls;
    set_log_sink([&](LogLevel, std::string_view) { ++calls; });
    if (line == "first") log(LogLevel::error, "second");
  });
  log(LogLevel::error, "first");
  set_log_sink({});
  EXPECT_EQ(calls, 2);
}

TEST(Log, TakesLinesOfPluginsWhateverLevelTheySay) {
  const Lines lines(LogLevel::debug);
  host()->log(host(), PLUGRAD_DEBUG, "low");
  host()->log(host(), 77, "unknown level");
  host()->log(host(), PLUGRAD_WARNING, nullptr);
  ASSERT_EQ(lines.all.size(), 3u);
  EXPECT_EQ(lines.all[0], std::pair(LogLevel::debug, std::string("low")));
  EXPECT_EQ(lines.all[1].first, LogLevel::error);
  EXPECT_EQ(lines.all[2].second, "");
}

// Has only kernels for FILL and COPY, so every other op must run elsewhere.
class Poor final : public Backend {
 public:
  explicit Poor(const Opening&) {}
  Rows kernels() const override {
    static constexpr KernelRow kRows[] = {kernel<fill>(PLUGRAD_OP_FILL, PLUGRAD_F32),
                                          kernel<copy_all>(PLUGRAD_OP_COPY, PLUGRAD_F32)};
    return kRows;
  }

 private:
  static void fill(const Call& call) {
    std::fill_n(data<float>(call.out()), call.out().count, immediate<float>(call.in(0)));
  }
  static void copy_all(const Call& call) { std::copy_n(data<float>(call.in(0)), call.out().count, data<float>(call.out())); }
};

// Has no kernels.
class Bare final : public Backend {
 public:
  explicit Bare(const Opening&) {}
};

class Policy : public ::testing::Test {
 protected:
  void SetUp() override {
    static constexpr plugrad_backend kPoor = backend_table<Poor>("poor"), kBare = backend_table<Bare>("bare");
    if (!has_device("poor")) {
      add_backend(&kPoor);
      add_backend(&kBare);
    }
    poor_ = Device("poor");
    if (!has_device("cpu") && !has_device("reference")) GTEST_SKIP() << "no host-memory device as fallback";
  }
  void TearDown() override { set_fallback(Fallback::error); }
  Tensor three() { return full({4}, 3, DType::f32, poor_); }
  Device poor_;
};

TEST_F(Policy, AnOpThatADeviceLacksIsAnErrorByDefault) {
  EXPECT_EQ(fallback(), Fallback::error);
  const uint64_t before = poor_.counters().host_fallbacks;
  EXPECT_THROW(mul(three(), three()), Error);
  EXPECT_EQ(poor_.counters().host_fallbacks, before);
}

TEST_F(Policy, AllowedItIsDoneInHostMemoryAndCounted) {
  set_fallback(Fallback::allow);
  const Lines lines(LogLevel::debug);
  const uint64_t before = poor_.counters().host_fallbacks;
  const Tensor product = mul(three(), three());
  EXPECT_EQ(product.device(), poor_);
  EXPECT_EQ(product.to_vector<float>(), std::vector<float>(4, 9));
  EXPECT_EQ(poor_.counters().host_fallbacks, before + 1);
  EXPECT_TRUE(lines.all.empty());
}

TEST_F(Policy, WarningItSaysSo) {
  set_fallback(Fallback::warn);
  const Lines lines(LogLevel::warning);
  EXPECT_EQ(mul(three(), 2).to_vector<float>(), std::vector<float>(4, 6));
  ASSERT_EQ(lines.all.size(), 1u);
  for (const char* part : {"mul", "poor:0"})
    EXPECT_NE(lines.all[0].second.find(part), std::string::npos) << lines.all[0].second;
}

TEST_F(Policy, ADeviceWithoutAnyKernelHasEverythingDoneElsewhere) {
  set_fallback(Fallback::allow);
  const Device bare("bare");
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, bare);
  EXPECT_EQ(add(mul(x, x), full({2, 3}, 1, DType::f32, bare)).to_vector<float>(),
            (std::vector<float>{2, 5, 10, 17, 26, 37}));
  EXPECT_EQ(slice(x, 0, 1, 2).to_vector<float>(), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(bare.counters().kernels, 0u);
  EXPECT_EQ(add(transpose(x), 1).to_vector<float>(), (std::vector<float>{2, 5, 3, 6, 4, 7}));
  EXPECT_EQ(transpose(x).to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST_F(Policy, ModesArePartOfTheQuestion) {
  EXPECT_FALSE(deterministic());
  EXPECT_FALSE(tf32());
  const Device device = default_device();
  const Tensor a = full({5, 5}, 1.5, DType::f32, device), plain = matmul(a, a);
  for (const bool exact : {false, true})
    for (const bool coarse : {false, true}) {
      set_deterministic(exact);
      set_tf32(coarse);
      EXPECT_EQ(deterministic(), exact);
      EXPECT_EQ(tf32(), coarse);
      EXPECT_EQ(matmul(a, a).to_vector<float>(), plain.to_vector<float>());
    }
  set_deterministic(false);
  set_tf32(false);
}

}  // namespace
}  // namespace plugrad
