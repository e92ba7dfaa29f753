#include <backends/cpu/machine.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace plugrad::cpu {
namespace {

int affinity() {
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 4) {  // the kernel's mask may be wider than glibc's cpu_set_t
    cpu_set_t* set = CPU_ALLOC(cpus);
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

// Returns the CPU time per second granted by cpu.max of one control group; infinity without a limit.
double quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return INFINITY;
  return std::strtod(quota.c_str(), nullptr) / period;
}

double quota_v1(const std::string& folder) {
  double quota = 0, period = 0;
  if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> quota) || quota <= 0) return INFINITY;
  if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period) || period <= 0) return INFINITY;
  return quota / period;
}

// Returns the smallest quota from this process's control group up to the root, since each of them applies.
double quota() {
  double least = INFINITY;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      least = std::min(least, v2 ? quota_v2("/sys/fs/cgroup" + path) : quota_v1("/sys/fs/cgroup/cpu" + path));
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace

int usable_threads() {
  const double limit = std::ceil(quota());
  return std::max(1, static_cast<int>(std::min<double>(affinity(), limit)));
}

uint64_t installed_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    uint64_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) return kib * 1024;
    file.ignore(256, '\n');
  }
  return 0;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "CPU";
}

#if defined(__x86_64__)
bool multiplies_bf16_pairs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}
bool multiplies_bf16_tiles() {
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (kBf16 | kTiles)) != (kBf16 | kTiles)) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // <asm/prctl.h>, from Linux 5.16 on
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
bool multiplies_bf16_pairs() { return false; }
bool multiplies_bf16_tiles() { return false; }
#endif

#if defined(__x86_64__)
uint32_t float_mode() { return __builtin_ia32_stmxcsr() & ~0x3fu; }  // the low bits are exception flags, not controls
void set_float_mode(uint32_t mode) { __builtin_ia32_ldmxcsr(mode); }
uint32_t flushing(uint32_t mode) { return mode | 0x8040u; }
#elif defined(__aarch64__)
uint32_t float_mode() {
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return static_cast<uint32_t>(mode);
}
void set_float_mode(uint32_t mode) { asm volatile("msr fpcr, %0" : : "r"(static_cast<uint64_t>(mode))); }
uint32_t flushing(uint32_t mode) { return mode | (1u << 24); }
#else
uint32_t float_mode() { return 0; }
void set_float_mode(uint32_t) {}
uint32_t flushing(uint32_t mode) { return mode; }
#endif

}  // namespace plugrad::cpu
