// The cost of CUDA itself, as a baseline for bench/rates.cpp: the launch of an empty kernel, and a copy on the device.
// It uses no plugrad code.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

__global__ void nothing() {}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool well(cudaError_t error) {
  if (error != cudaSuccess) std::fprintf(stderr, "bench_cuda_floor: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

void print_launch(cudaStream_t stream) {
  double best = 1e9;
  for (int round = 0; round < 200; ++round) {
    cudaStreamSynchronize(stream);
    const double start = now();
    for (int i = 0; i < 200; ++i) nothing<<<1, 32, 0, stream>>>();
    best = std::min(best, (now() - start) / 200);
  }
  std::printf("call of an empty kernel\t%.6g\tns\n", best * 1e9);
}

bool print_copy(cudaStream_t stream, size_t mebi) {
  const size_t bytes = mebi << 20;
  char *to = nullptr, *from = nullptr;
  if (!well(cudaMalloc(&to, bytes)) || !well(cudaMalloc(&from, bytes))) return false;
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    cudaStreamSynchronize(stream);
    const double start = now();
    for (int i = 0; i < 20; ++i) cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    cudaStreamSynchronize(stream);
    best = std::min(best, (now() - start) / 20);
  }
  std::printf("cudaMemcpy %zu MiB\t%.6g\tGB/s\n", mebi, 2e-9 * static_cast<double>(bytes) / best);
  return well(cudaFree(to)) && well(cudaFree(from));
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  if (!well(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return 1;
  print_launch(stream);
  for (const size_t mebi : {64, 256, 1024})
    if (!print_copy(stream, mebi)) return 1;
}
