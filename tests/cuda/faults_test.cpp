// What goes wrong on a device, as a program sees it: through the core, with the backend linked in, so that the test can tell
// the emulator what to break. Each case is a process of its own.
#include <plugrad/backends/cuda.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace plugrad::test {
namespace {

constexpr int64_t kMebi = 1 << 18;  // f32 elements in 1 MiB

// Prints what f threw, for the test to match; then the process ends as any program does.
[[noreturn]] void report(const char* settings, const std::function<void()>& f) {
  setenv("PLUGRAD_SIMT", settings, 1);
  const PluginRecord record = add_backend(plugrad_cuda_backend(host()));
  std::fprintf(stderr, "%u devices, %s\n", record.devices, record.reason.c_str());
  try {
    f();
    std::fprintf(stderr, "all went well\n");
  } catch (const Error& error) {
    std::fprintf(stderr, "code %d: %s\n", int(error.code()), error.what());
  }
  std::exit(0);
}
void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(1);
}
Tensor some(int64_t n, float value = 1) { return full({n}, value, DType::f32, Device("cuda-emu")); }
float total(const Tensor& x) { return sum(x).item<float>(); }

class FaultsDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  void TearDown() override { unsetenv("PLUGRAD_SYNC"); }
  void expect(const char* settings, const std::function<void()>& f, const char* said) {
    EXPECT_EXIT(report(settings, f), testing::ExitedWithCode(0), said);
  }
};

TEST_F(FaultsDeathTest, AFullDeviceGivesBackWhatIsCachedAndGoesOn) {
  expect("memory=64", [] {
    { demand(total(some(40 * kMebi)) == 40.0f * kMebi, "40 MiB of ones"); }  // cached from here on
    demand(Device("cuda-emu").memory().cached >= 40u << 20, "the first block is cached");
    demand(total(some(50 * kMebi, 2)) == 100.0f * kMebi, "50 MiB of twos beside it");
  }, "all went well");
}

TEST_F(FaultsDeathTest, AFullDeviceIsAnErrorAndTheDeviceLives) {
  expect("memory=64", [] {
    const Tensor held = some(40 * kMebi);
    try {
      some(50 * kMebi);
    } catch (const Error& error) {
      demand(error.code() == Code::out_of_memory, "out_of_memory");
      demand(total(held) == 40.0f * kMebi, "the tensor is whole");
      demand(total(some(4 * kMebi)) == 4.0f * kMebi, "there is room for another");
      throw;
    }
  }, "code 3: .*cuda-emu:0. out of memory: 52428800 bytes wanted, .*out of memory.*cudaErrorMemoryAllocation");
}

TEST_F(FaultsDeathTest, ARefusedAllocationIsTriedOnceMore) {
  expect("", [] {
    { total(some(12 * kMebi)); }
    simt::inject(simt::Injection::malloc_fails, 1);
    demand(total(some(13 * kMebi)) == 13.0f * kMebi, "the second try");
  }, "all went well");
}

TEST_F(FaultsDeathTest, TheOptionMemoryIsALimit) {
  expect("memory=256", [] {
    set_device_options("cuda-emu", {{"memory", std::to_string(32 << 20)}});
    const Tensor held = some(20 * kMebi);
    some(14 * kMebi);
  }, "code 3: .*cuda-emu:0. out of memory: 14680064 bytes wanted, .*at most 33554432 by the option memory");
}

TEST_F(FaultsDeathTest, ASumOfManyElementsIsOneLaunch) {
  expect("", [] {
    const Tensor x = some(4 * kMebi);
    Device("cuda-emu").sync();
    const uint64_t before = simt::launches();
    demand(total(x) == 4.0f * kMebi, "four mebi of ones");
    demand(simt::launches() == before + 1, "one launch");
  }, "all went well");
}

TEST_F(FaultsDeathTest, ARefusedLaunchIsTheErrorOfItsOpAlone) {
  expect("", [] {
    const Tensor x = some(10);
    Device("cuda-emu").sync();
    simt::inject(simt::Injection::launch_refused, 1);
    try {
      tanh(x);
    } catch (const Error&) {
      demand(total(tanh(x) * 0 + 1) == 10, "the next one goes");
      throw;
    }
  }, "code 7: .*TANH.*invalid configuration argument");
}

TEST_F(FaultsDeathTest, AFailedKernelLosesTheDevice) {
  expect("", [] {
    const Tensor x = some(10), y = some(10, 2);
    Device("cuda-emu").sync();
    simt::inject(simt::Injection::launch_faults, 1);
    try {
      total(x * y);
    } catch (const Error& error) {
      demand(error.code() == Code::device_lost, "device_lost");
      for (int i = 0; i < 3; ++i) {  // for ever
        try {
          total(x + y);
          demand(false, "work on a lost device is refused");
        } catch (const Error& again) {
          demand(again.code() == Code::device_lost, "and it stays lost");
        }
      }
      throw;
    }
  }, "code 6: .*cuda-emu:0.*illegal memory access.*device is lost");
}

TEST_F(FaultsDeathTest, TheOpOfAFailedKernelIsNamedWhereEachIsWaitedFor) {
  setenv("PLUGRAD_SYNC", "1", 1);  // the process of the case inherits it
  expect("", [] {
    const Tensor x = some(10);
    Device("cuda-emu").sync();
    simt::inject(simt::Injection::launch_faults, 1);
    total(tanh(x));
  }, "code 6: .*TANH.*illegal memory access");
}

TEST_F(FaultsDeathTest, ALostDeviceLeavesTheOtherOneAlone) {
  expect("", [] {
    const Tensor here = some(10), there = full({10}, 3, DType::f32, Device("cuda-emu:1"));
    simt::inject(simt::Injection::launch_faults, 1);
    try {
      total(here + here);
    } catch (const Error&) {
      demand(total(there * there) == 90, "the second device works");
      throw;
    }
  }, "code 6: ");
}

TEST_F(FaultsDeathTest, NoDriver) {
  expect("devices=0", [] { Device("cuda-emu"); }, "0 devices, no NVIDIA driver is installed.*\n*.*code 1: ");
}
TEST_F(FaultsDeathTest, AnOldDriver) {
  expect(
      "driver=12040", [] {},
      "0 devices, the NVIDIA driver knows CUDA up to 12.4, this plugin needs 13.0: update the driver");
}
TEST_F(FaultsDeathTest, ADriverAndNoGpu) {
  expect("devices=0,driver=13020", [] {}, "0 devices, the NVIDIA driver finds no GPU");
}
TEST_F(FaultsDeathTest, AnArchitectureThatThePluginHasNoCodeFor) {
  expect(
      "capability=70", [] { some(1); },
      "2 devices, \n.*code 2: .*SIMT emulator has compute capability 7.0, and this plugin has code for 75");
}

}  // namespace
}  // namespace plugrad::test
