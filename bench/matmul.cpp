// Compares matrix products of the device cpu and of other libraries, in turns in one process. Prints a line for each size
// and layout: GFLOP/s in the best round and, in brackets, in the median round. NT: the right operand is transposed; TN: the
// left operand. The program removes the libraries' environment variables, so that each library runs with its defaults.
#include <plugrad/plugrad.hpp>

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using plugrad::Tensor;

constexpr double kRoundWork = 2e7;  // the least floating-point operations of a round
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
constexpr const char* kLayouts[] = {"NN", "NT", "TN"};

using Cblas = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
using Dnnl = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                     float*, int64_t);
using Multiply = std::function<void(const char* layout, int64_t n, const float* a, const float* b, float* c)>;

struct Contestant {
  std::string name;
  Multiply multiply;
  std::vector<double> seconds;  // the time of a product in each round
};

// Restricts the process to `threads` processors. A library that uses TBB, such as oneDNN's wheel, reads no variable for the
// number of its threads and starts one thread for each processor that it may use.
void restrict_processors(int threads) {
  cpu_set_t all, some;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  CPU_ZERO(&some);
  for (int i = 0, left = threads; i < CPU_SETSIZE && left > 0; ++i)
    if (CPU_ISSET(i, &all)) {
      CPU_SET(i, &some);
      --left;
    }
  sched_setaffinity(0, sizeof some, &some);
}

// Libraries read their settings when they are loaded, some before main. So the program restarts with a clean environment.
void clean_environment(char** arguments, int threads) {
  if (std::getenv("PLUGRAD_BENCH_CLEAN")) return;
  std::vector<std::string> names;
  for (char** entry = environ; *entry; ++entry)
    for (const char* prefix : {"OPENBLAS_", "GOTO_", "OMP_", "MKL_", "BLIS_", "ONEDNN_", "DNNL_", "KMP_"})
      if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0)
        names.emplace_back(*entry, static_cast<size_t>(std::strchr(*entry, '=') - *entry));
  for (const std::string& name : names) unsetenv(name.c_str());
  const std::string count = std::to_string(threads);
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}) setenv(name, count.c_str(), 1);
  setenv("PLUGRAD_CPU_OPTIONS", ("threads=" + count).c_str(), 1);
  setenv("MKL_THREADING_LAYER", threads == 1 ? "SEQUENTIAL" : "GNU", 1);
  setenv("PLUGRAD_BENCH_CLEAN", "1", 1);
  restrict_processors(threads);
  execv("/proc/self/exe", arguments);
}

Contestant open_library(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw plugrad::Error(plugrad::Code::invalid, dlerror());
  const std::string name = file.substr(file.rfind('/') + 1);
  for (const char* function : {"cblas_sgemm", "scipy_cblas_sgemm"})
    if (const auto gemm = reinterpret_cast<Cblas>(dlsym(library, function)))
      return {name,
              [gemm](const char* layout, int64_t n, const float* a, const float* b, float* c) {
                const auto order = [](char side) { return side == 'T' ? kTranspose : kNoTranspose; };
                const int i = static_cast<int>(n);
                gemm(kRowMajor, order(layout[0]), order(layout[1]), i, i, i, 1, a, i, b, i, 0, c, i);
              },
              {}};
  if (const auto gemm = reinterpret_cast<Dnnl>(dlsym(library, "dnnl_sgemm")))
    return {name,
            [gemm](const char* layout, int64_t n, const float* a, const float* b, float* c) {
              gemm(layout[0], layout[1], n, n, n, 1, a, n, b, n, 0, c, n);
            },
            {}};
  throw plugrad::Error(plugrad::Code::invalid, "[" + file + "] has neither cblas_sgemm, scipy_cblas_sgemm nor dnnl_sgemm");
}

// For one thread the processor time of the thread, which other work on the machine disturbs less; else the wall time.
double now(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& work, int calls, int threads) {
  work();
  const double start = now(threads);
  for (int i = 0; i < calls; ++i) work();
  return (now(threads) - start) / calls;
}

void measure(std::vector<Contestant>& all, const char* layout, int64_t n, int rounds, int threads) {
  const Tensor stored_a = plugrad::rand({n, n}), stored_b = plugrad::rand({n, n});
  const Tensor a = layout[0] == 'T' ? transpose(stored_a) : stored_a, b = layout[1] == 'T' ? transpose(stored_b) : stored_b;
  const std::vector<float> left = stored_a.to_vector<float>(), right = stored_b.to_vector<float>();
  std::vector<float> out(left.size());
  const double work = 2 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  const int calls = std::max(1, static_cast<int>(kRoundWork * threads / work));
  for (Contestant& each : all) each.seconds.clear();
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      Contestant& each = all[(i + static_cast<size_t>(round)) % all.size()];  // the order rotates with the rounds
      each.seconds.push_back(seconds_of(
          [&] {
            if (each.multiply) each.multiply(layout, n, left.data(), right.data(), out.data());
            else (void)plugrad::matmul(a, b);
          },
          calls, threads));
    }
  std::printf("%6lld %s", static_cast<long long>(n), layout);
  double best_peer = 0, ours = 0;
  for (Contestant& each : all) {
    std::sort(each.seconds.begin(), each.seconds.end());
    const double best = 1e-9 * work / each.seconds.front(), median = 1e-9 * work / each.seconds[each.seconds.size() / 2];
    (each.multiply ? best_peer : ours) = std::max(each.multiply ? best_peer : ours, best);
    std::printf("  %14.1f (%6.1f)", best, median);
  }
  if (best_peer > 0) std::printf("  %6.3f", ours / best_peer);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::atoi(argv[1]) < 1) {
    std::fprintf(stderr,
                 "usage: bench_matmul THREADS [LIBRARY ...]\n"
                 "  LIBRARY: a file with cblas_sgemm, scipy_cblas_sgemm or dnnl_sgemm\n");
    return 2;
  }
  const int threads = std::atoi(argv[1]);
  clean_environment(argv, threads);
  try {
    plugrad::set_default_device(plugrad::Device("cpu"));
    std::vector<Contestant> all{{"plugrad", {}, {}}};
    for (int i = 2; i < argc; ++i) all.push_back(open_library(argv[i]));
    std::printf("%6s   ", "n");
    for (const Contestant& each : all) std::printf("  %23.23s", each.name.c_str());
    std::printf("  ours / best\n");
    constexpr std::pair<int64_t, int> kRows[] = {{64, 300}, {128, 200}, {256, 100}, {512, 40}, {1024, 16}, {2048, 6}};
    for (const auto& [n, rounds] : kRows)
      for (const char* layout : kLayouts) measure(all, layout, n, rounds, threads);
  } catch (const plugrad::Error& error) {
    std::fprintf(stderr, "bench_matmul: %s\n", error.what());
    return 1;
  }
}
