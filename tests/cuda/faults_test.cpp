// Device failures as a program sees them, through the core. The backend is linked in, so that the test can inject failures
// into the emulator. Each case runs in its own process.
#include <tests/cuda/faults.hpp>

namespace plugrad::test {
namespace {

TEST_F(FaultsDeathTest, AFullDeviceGivesBackWhatIsCachedAndGoesOn) {
  expect(
      "memory=64",
      [] {
        {
          demand(total(some(40 * kMebi)) == 40.0f * kMebi, "40 MiB of ones");
        }  // cached from here on
        demand(Device("cuda-emu").memory().cached >= 40u << 20, "the first block is cached");
        demand(total(some(50 * kMebi, 2)) == 100.0f * kMebi, "50 MiB of twos beside it");
      },
      "all went well");
}

TEST_F(FaultsDeathTest, AFullDeviceIsAnErrorAndTheDeviceLives) {
  expect(
      "memory=64",
      [] {
        const Tensor held = some(40 * kMebi);
        try {
          some(50 * kMebi);
        } catch (const Error& error) {
          demand(error.code() == Code::out_of_memory, "out_of_memory");
          demand(total(held) == 40.0f * kMebi, "the tensor is whole");
          demand(total(some(4 * kMebi)) == 4.0f * kMebi, "there is room for another");
          throw;
        }
      },
      "code 3: .*out of memory on cuda-emu:0: 52428800 bytes wanted, .*out of memory.*cudaErrorMemoryAllocation");
}

TEST_F(FaultsDeathTest, ARefusedAllocationIsTriedOnceMore) {
  expect(
      "",
      [] {
        {
          total(some(12 * kMebi));
        }
        simt::inject(simt::Injection::malloc_fails, 1);
        demand(total(some(13 * kMebi)) == 13.0f * kMebi, "the second try");
      },
      "all went well");
}

TEST_F(FaultsDeathTest, TheOptionMemoryIsALimit) {
  expect(
      "memory=256",
      [] {
        set_device_options("cuda-emu", {{"memory", std::to_string(32 << 20)}});
        const Tensor held = some(20 * kMebi);
        some(14 * kMebi);
      },
      "code 3: .*out of memory on cuda-emu:0: 14680064 bytes wanted, .*at most 33554432 by the option memory");
}

TEST_F(FaultsDeathTest, ASumOfManyElementsIsOneLaunch) {
  expect(
      "",
      [] {
        const Tensor x = some(4 * kMebi);
        Device("cuda-emu").sync();
        const uint64_t before = simt::launches();
        demand(total(x) == 4.0f * kMebi, "four mebi of ones");
        demand(simt::launches() == before + 1, "one launch");
      },
      "all went well");
}

TEST_F(FaultsDeathTest, ARefusedLaunchIsTheErrorOfItsOpAlone) {
  expect(
      "",
      [] {
        const Tensor x = some(10);
        Device("cuda-emu").sync();
        simt::inject(simt::Injection::launch_refused, 1);
        try {
          tanh(x);
        } catch (const Error&) {
          demand(total(tanh(x) * 0 + 1) == 10, "the next one goes");
          throw;
        }
      },
      "code 7: .*TANH.*invalid configuration argument");
}

// Errors that concern a single call, such as the graph capture of another library or code that cannot be compiled.
TEST_F(FaultsDeathTest, AnErrorThatDoesNotStickIsOfItsCallAlone) {
  expect(
      "",
      [] {
        const Tensor x = some(10);
        for (const int error : {3, 46, 218, 219, 220, 221, 222, 223, 500, 900, 901, 902, 903, 904, 905, 906, 907, 908}) {
          for (const bool allocates : {false, true}) {
            Device("cuda-emu").sync();
            simt::inject_error(error, 1);
            try {
              allocates ? some(3 * kMebi) : tanh(x);
            } catch (const Error& refused) {
              demand(refused.code() == Code::internal, refused.what());
            }
            demand(total(tanh(x) * 0 + 1) == 10, "the device goes on");
          }
        }
        simt::inject_error(900, 1);
        tanh(x);
      },
      "code 7: .*TANH.*operation not permitted when stream is capturing");
}

TEST_F(FaultsDeathTest, AnUploadNeedsNoLargePinnedMemory) {
  expect(
      "",
      [] {
        const std::vector<float> values(3 * kMebi, 2.0f);
        Device("cuda-emu").sync();
        simt::inject(simt::Injection::malloc_fails, 2);  // first the tensor's memory, then the large slots
        demand(total(Tensor::from(values, {3 * kMebi}, Device("cuda-emu"))) == 6.0f * kMebi, "the values are there");
        demand(total(Tensor::from(values, {3 * kMebi}, Device("cuda-emu"))) == 6.0f * kMebi, "and again");
      },
      "all went well");
}

TEST_F(FaultsDeathTest, AnIndexOutOfRangeIsReportedAndTheNextOneToo) {
  expect(
      "",
      [] {
        const Device device("cuda-emu");
        const Tensor x = some(10), wrong = Tensor::from(std::vector<int64_t>{3, 12}, {2}, device);
        const Tensor right = Tensor::from(std::vector<int64_t>{3, 9}, {2}, device);
        for (int i = 0; i < 3; ++i) {
          try {
            total(gather(x, 0, wrong));
            demand(false, "the index is found");
          } catch (const Error& error) {
            demand(std::string(error.what()).find("index") != std::string::npos, error.what());
          }
          demand(total(gather(x, 0, right)) == 2, "the device goes on");
        }
      },
      "all went well");
}

TEST_F(FaultsDeathTest, AFailedKernelLosesTheDevice) {
  expect(
      "",
      [] {
        const Tensor x = some(10), y = some(10, 2);
        Device("cuda-emu").sync();
        simt::inject(simt::Injection::launch_faults, 1);
        try {
          total(x * y);
        } catch (const Error& error) {
          demand(error.code() == Code::device_lost, "device_lost");
          for (int i = 0; i < 3; ++i) {  // every time
            try {
              total(x + y);
              demand(false, "work on a lost device is refused");
            } catch (const Error& again) {
              demand(again.code() == Code::device_lost, "and it stays lost");
            }
          }
          throw;
        }
      },
      "code 6: .*cuda-emu:0.*illegal memory access.*device is lost");
}

TEST_F(FaultsDeathTest, TheOpOfAFailedKernelIsNamedWhereEachIsWaitedFor) {
  setenv("PLUGRAD_SYNC", "1", 1);  // the process of the case inherits it
  expect(
      "",
      [] {
        const Tensor x = some(10);
        Device("cuda-emu").sync();
        simt::inject(simt::Injection::launch_faults, 1);
        total(tanh(x));
      },
      "code 6: .*TANH.*illegal memory access");
}

TEST_F(FaultsDeathTest, ALostDeviceLeavesTheOtherOneAlone) {
  expect(
      "",
      [] {
        const Tensor here = some(10), there = full({10}, 3, DType::f32, Device("cuda-emu:1"));
        simt::inject(simt::Injection::launch_faults, 1);
        try {
          total(here + here);
        } catch (const Error&) {
          demand(total(there * there) == 90, "the second device works");
          throw;
        }
      },
      "code 6: ");
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
