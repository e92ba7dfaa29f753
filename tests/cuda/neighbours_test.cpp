// The backend with other users of CUDA in the process: the current device, contexts, graph captures, peers, forks.
#include <tests/cuda/faults.hpp>

#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plugrad::test {
namespace {

using NeighboursDeathTest = FaultsDeathTest;

int current() {
  int device = -1;
  cudaGetDevice(&device);
  return device;
}

TEST_F(NeighboursDeathTest, TheThreadsCurrentDeviceStays) {
  expect(
      "",
      [] {
        void* theirs = nullptr;
        demand(cudaSetDevice(0) == cudaSuccess && cudaMalloc(&theirs, 4) == cudaSuccess, "another library uses device 0");
        const Device second("cuda-emu:1");
        demand(current() == 0, "after the device was opened");
        const Tensor x = full({kMebi}, 2, DType::f32, second), square = reshape(x, {512, 512});
        demand(current() == 0, "after a launch and an allocation");
        demand(total(x) == 2.0f * kMebi, "the values are right");
        demand(current() == 0, "after a wait and a download");
        demand(total(matmul(square, square)) == 4.0f * 512 * kMebi, "products are right");
        demand(current() == 0, "after a product");
        second.physical_memory();
        second.trim();
        demand(current() == 0, "after questions and frees");
      },
      "all went well");
}

TEST_F(NeighboursDeathTest, ADeviceThatNobodyUsesGetsNoContext) {
  expect(
      "",
      [] {
        demand(total(full({10}, 2, DType::f32, Device("cuda-emu:1"))) == 20, "the second device works");
        demand(simt::has_context(1) && !simt::has_context(0), "the first one is left alone");
      },
      "all went well");
}

TEST_F(NeighboursDeathTest, AnotherLibrarysCaptureIsNotDisturbed) {
  expect(
      "",
      [] {
        simt::begin_capture_elsewhere();
        const Device device("cuda-emu");
        for (int i = 0; i < 3; ++i) demand(total(some((i + 1) * kMebi)) == static_cast<float>((i + 1) * kMebi), "values");
        const Tensor square = full({64, 64}, 1, DType::f32, device);
        demand(total(matmul(square, square)) == 64 * 64 * 64, "products");
        device.sync();
        device.physical_memory();
        device.trim();
        demand(simt::end_capture_elsewhere(), "the capture goes on");
      },
      "all went well");
}

TEST_F(NeighboursDeathTest, CopiesBetweenDevicesAskForPeerAccess) {
  expect(
      "",
      [] {
        const Tensor x = some(1000, 3);
        for (int i = 0; i < 2; ++i) demand(total(to(x, Device("cuda-emu:1"))) == 3000, "the values arrive");
        const auto enabled = [](int from, int to) {
          cudaSetDevice(from);
          const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
          cudaGetLastError();
          return error == cudaErrorPeerAccessAlreadyEnabled;
        };
        demand(enabled(0, 1) || enabled(1, 0), "one device reaches the other's memory");
      },
      "all went well");
}

// A missing cuBLAS is only a warning: the products are correct, but slower.
TEST_F(NeighboursDeathTest, AMissingCublasIsAWarningThatSaysWhatToInstall) {
  setenv("PLUGRAD_CUBLAS", "/nowhere/libcublas.so.13", 1);
  expect(
      "",
      [] {
        int warnings = 0;
        set_log_sink([&](LogLevel level, std::string_view line) {
          if (level == LogLevel::warning) std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
          warnings += level == LogLevel::warning;
        });
        for (const char* name : {"cuda-emu:0", "cuda-emu:1"}) {
          const Tensor square = full({8, 8}, 1, DType::f32, Device(name));
          demand(total(matmul(square, square)) == 8 * 8 * 8, "products");
        }
        set_log_sink(nullptr);
        demand(warnings == 1, "one warning for all devices");
      },
      "no cuBLAS; looked for /nowhere/libcublas.so.13.*pip install nvidia-cublas(.|\n)*all went well");
  unsetenv("PLUGRAD_CUBLAS");
}

TEST_F(NeighboursDeathTest, AForkedProcessIsToldToSpawn) {
  expect(
      "",
      [] {
        demand(has_device("cuda-emu"), "devices are counted, which starts CUDA");
        const pid_t child = fork();
        if (!child) {
          try {
            Device("cuda-emu");
          } catch (const Error& error) {
            std::fprintf(stderr, "%s\n", error.what());
            std::_Exit(0);
          }
          std::_Exit(1);
        }
        int status = 0;
        demand(waitpid(child, &status, 0) == child && status == 0, "the child is refused");
      },
      "the process was forked after the plugin.*: start processes by spawn");
}

}  // namespace
}  // namespace plugrad::test
