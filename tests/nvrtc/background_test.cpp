// Compiled steps while their fusions are being compiled, and where fusions cannot be compiled.
#include <plugrad/backends/cuda.hpp>
#include <plugrad/plugrad.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace plugrad::test {
namespace {

namespace fs = std::filesystem;
using Function = std::function<Tensor(const Tensor&)>;

constexpr auto kPatience = std::chrono::seconds(60);

// Each case is a process of its own.
class BackgroundFusions : public ::testing::Test {
 protected:
  void open(const std::string& options) {
    setenv("PLUGRAD_CUDA_EMU_OPTIONS", options.c_str(), 1);
    set_log_sink([this](LogLevel level, std::string_view line) {
      if (level >= LogLevel::warning) warnings_.emplace_back(line);
    });
    add_backend(plugrad_cuda_backend(host()));
    const Device device("cuda-emu");
    x_ = rand({1000}, DType::f32, device, -1, 1);
    expected_ = (relu(x_) * x_).to_vector<float>();
    step_(x_);  // records the step
  }
  // Returns how many kernels a replay launches, and expects the right results.
  uint64_t launches() {
    const uint64_t before = simt::launches();
    const Tensor y = step_(x_);
    EXPECT_EQ(y.to_vector<float>(), expected_);
    return simt::launches() - before;
  }
  // Waits until the step's calls are one kernel.
  void expect_compiled() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    uint64_t last = launches();
    for (; last != 1 && std::chrono::steady_clock::now() < end; last = launches())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(last, 1u);
  }

  Tensor x_;
  std::vector<float> expected_;
  std::vector<std::string> warnings_;
  Compiled<Function> step_ = compile(Function([](const Tensor& x) { return relu(x) * x; }), {.fusion_elements = 1});
};

TEST_F(BackgroundFusions, RunSinglyUntilTheyAreCompiled) {
  open("fusions=1");
  EXPECT_EQ(launches(), 2u);
  expect_compiled();
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(BackgroundFusions, RunAtOnceIfAskedTo) {
  open("fusions=2");
  EXPECT_EQ(launches(), 1u);
}

TEST_F(BackgroundFusions, AreOffInThisBuild) {
  open("");
  EXPECT_EQ(launches(), 2u);
}

TEST_F(BackgroundFusions, RunSinglyWhereNoCompilerIs) {
  setenv("PLUGRAD_NVRTC", "/nowhere/libnvrtc.so", 1);
  open("fusions=2");
  EXPECT_EQ(launches(), 2u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("no NVRTC; looked for /nowhere/libnvrtc.so"), std::string::npos) << warnings_[0];
}

// A folder for compiled fusions. An earlier process, a child, has compiled the step's fusion into it. The child's temporary
// files lie in the folder as well, since the code of the replacement is a path.
class KeptFusions : public BackgroundFusions {
 protected:
  KeptFusions() {
    fs::create_directories(folder_);
    setenv("TMPDIR", folder_.c_str(), 1);
    if (const pid_t child = fork()) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
      return;
    }
    open("fusions=2,cache=" + folder_.string());
    _exit(launches() == 1 && warnings_.empty() ? 0 : 1);  // without destructors, which would remove the code
  }
  ~KeptFusions() override { fs::remove_all(folder_); }
  fs::path file() const {
    for (const auto& each : fs::directory_iterator(folder_))
      if (each.path().extension() == ".cache") return each.path();
    return {};
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("plugrad-fusions-" + std::to_string(getpid()));
};

TEST_F(KeptFusions, AreLoadedAtOnce) {
  ASSERT_TRUE(fs::exists(file()));
  open("fusions=1,cache=" + folder_.string());
  EXPECT_EQ(launches(), 1u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KeptFusions, AreNotReadWhereTheUserWantsNone) {
  open("fusions=1,cache=off");
  EXPECT_EQ(launches(), 2u);
  expect_compiled();
}

TEST_F(KeptFusions, AreCompiledAgainIfTheirCodeDoesNotLoad) {
  for (const auto& each : fs::recursive_directory_iterator(folder_))
    if (each.path().extension() == ".so") fs::resize_file(each.path(), 0);
  open("fusions=2,cache=" + folder_.string());
  EXPECT_EQ(launches(), 1u);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KeptFusions, AreCompiledAgainIfTheFileIsDamaged) {
  fs::resize_file(file(), fs::file_size(file()) - 1);
  open("fusions=2,cache=" + folder_.string());
  EXPECT_EQ(launches(), 1u);
  EXPECT_TRUE(warnings_.empty());
}

// The replacement compiles for no other architecture than sm_90.
TEST_F(BackgroundFusions, RunSinglyIfTheyDoNotCompile) {
  setenv("PLUGRAD_SIMT", "capability=75", 1);
  open("fusions=2");
  EXPECT_EQ(launches(), 2u);
  EXPECT_EQ(launches(), 2u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("--gpu-architecture"), std::string::npos) << warnings_[0];
}

// A graph is recorded once its fusions are compiled. Until then its calls run one by one.
TEST_F(BackgroundFusions, BecomePartsOfGraphs) {
  open("fusions=1,graphs=1");
  auto step = compile(Function([](const Tensor& x) { return max(softmax(relu(x) * x, 0)); }), {.fusion_elements = 1});
  const float expected = max(softmax(relu(x_) * x_, 0)).item<float>();
  const auto launched = [&] {
    const uint64_t before = simt::launches();
    EXPECT_EQ(step(x_).item<float>(), expected);
    return simt::launches() - before;
  };
  launched();  // records the step
  EXPECT_EQ(launched(), 4u);
  // Three kernels compute, and two store the number from which failure reports count.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (launched() != 5 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(launched(), 5u);
}

}  // namespace
}  // namespace plugrad::test
