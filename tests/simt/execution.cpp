#include <tests/simt/execution.hpp>

#include <tests/simt/watch.hpp>

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

extern "C" {
extern char __start_simt_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_simt_shared[] __attribute__((weak, visibility("hidden")));
}

namespace simt {
namespace {
constexpr int kPoison = 0xff;  // NaN in every floating type, -1 in integers
constexpr size_t kDynamicMost = 256 << 10;
constexpr uint64_t kSmall = 65536;           // the most threads of a launch that runs in several orders
constexpr uint64_t kLateBytes = 64 << 20;    // the most bytes that fences copy in a run with late writes
constexpr uint64_t kShuffledBlocks = 65536;  // larger grids run only forward or in reverse
constexpr unsigned kSettled = 3;             // runs without newly touched shared memory after which the footprint is known

std::atomic<uint64_t> launch_count{0}, schedule_count{0};
char *dynamic_end = nullptr, *dynamic_begin = nullptr;

#ifndef __clang__
thread_local char of_this_module;

struct Search {
  uintptr_t code;
  SharedRange found;
};
int look_at_module(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  bool ours = false;
  size_t bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    ours |= segment.p_type == PT_LOAD && search->code >= start && search->code < start + segment.p_memsz;
    if (segment.p_type == PT_TLS) bytes = segment.p_memsz;
  }
  if (ours) search->found = {static_cast<char*>(info->dlpi_tls_data), info->dlpi_tls_data ? bytes : 0};
  return ours;
}
#endif

// The part of the shared range that a kernel uses: the range of poisoned bytes that its blocks have overwritten.
struct Footprint {
  size_t low = 0, high = 0;
  unsigned settled = 0;

  void poison(SharedRange range) const {
    // Not memset: the range is null in a program without shared memory.
    if (settled < kSettled) std::fill_n(range.begin, range.bytes, static_cast<char>(kPoison));
    else std::fill_n(range.begin + low, high - low, static_cast<char>(kPoison));
  }
  void learn(SharedRange range) {
    if (settled >= kSettled) return;
    ++settled;
    const auto changed = [](char c) { return c != static_cast<char>(kPoison); };
    const char* end = range.begin + range.bytes;
    const char* first = std::find_if<const char*>(range.begin, end, changed);
    if (first == end) return;
    while (!changed(end[-1])) --end;
    const auto from = static_cast<size_t>(first - range.begin), to = static_cast<size_t>(end - range.begin);
    if (high > low && from >= low && to <= high) return;
    low = high > low ? std::min(low, from) : from;
    high = std::max(high, to);
    settled = 0;
  }
};
Footprint& footprint(const void* function) {
  static auto* all = new std::unordered_map<const void*, Footprint>;
  return (*all)[function];
}

// Dynamic shared memory ends at the end of a page, and the next page is inaccessible.
void set_dynamic(size_t bytes) {
  if (!dynamic_end) {
    void* memory = mmap(nullptr, kDynamicMost + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory, kDynamicMost, PROT_READ | PROT_WRITE);
    dynamic_end = static_cast<char*>(memory) + kDynamicMost;
  }
  dynamic_begin = dynamic_end - (bytes + 15) / 16 * 16;
}

class Run {
 public:
  Run(const Kernel& kernel, Device& device, SharedRange shared)
      : kernel_(kernel), device_(device), shared_(shared), footprint_(footprint(kernel.function)) {
    gridDim = kernel.grid;
    blockDim = kernel.block;
    watch().begin(device);
    set_dynamic(kernel.dynamic_bytes);
  }
  ~Run() { device_.memory.end_log(); }

  void once(Order order) {
    ++schedule_count;
    const uint64_t blocks = count();
    std::mt19937_64 random(settings().seed);
    Block::current().prepare({kernel_.call, kernel_.frame.get()}, order, random);
    std::vector<uint64_t> turn;
    if (order == Order::shuffled && blocks <= kShuffledBlocks) {
      turn.resize(blocks);
      for (uint64_t i = 0; i < blocks; ++i) turn[i] = i;
      std::shuffle(turn.begin(), turn.end(), random);
    }
    for (uint64_t i = 0; i < blocks; ++i) {
      block(!turn.empty() ? turn[i] : order == Order::forward ? i : blocks - 1 - i);
      if (late_) late_->block_ends();
    }
    if (const std::string beside = device_.memory.check_ends(); !beside.empty())
      throw Fault(cudaErrorIllegalAddress, "a thread has written " + beside);
  }

  // Each run starts from the same memory. On return, memory holds the last run's results.
  void in_all_orders() {
    WriteLog& log = write_log();
    log.clear();
    device_.memory.begin_log();
    once(Order::forward);
    if (log.full) return;
    std::vector<char> after(log.count * kPage);
    for (size_t i = 0; i < log.count; ++i) std::memcpy(&after[i * kPage], log.pages[i].at, kPage);
    if (wants_late_writes(log)) with_late_writes(log, after);
    for (uint64_t n = 1; n < settings().schedules && !log.full; ++n) {
      rewind(log);
      once(n == 1 ? Order::reverse : Order::shuffled);
      if (log.full) return;
      compare(log, after,
              "a race: its threads in forward and in " + std::string(n == 1 ? "reverse" : "shuffled") +
                  " order leave different values in ");
    }
  }

 private:
  uint64_t count() const { return uint64_t{kernel_.grid.x} * kernel_.grid.y * kernel_.grid.z; }

  void block(uint64_t i) {
    footprint_.poison(shared_);
    if (kernel_.dynamic_bytes) std::memset(dynamic_begin, kPoison, static_cast<size_t>(dynamic_end - dynamic_begin));
    const dim3& grid = kernel_.grid;
    const uint3 index{static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                      static_cast<unsigned>(i / grid.x / grid.y)};
    Block::current().run(index);
    footprint_.learn(shared_);
  }

  // Late writes matter only to blocks that synchronise, and blocks can synchronise only by atomic operations.
  bool wants_late_writes(const WriteLog& log) const {
    const uint64_t threads = uint64_t{kernel_.block.x} * kernel_.block.y * kernel_.block.z;
    return count() > 1 && !watch().atomics.empty() && log.count * kPage * threads * count() <= kLateBytes;
  }

  void with_late_writes(WriteLog& log, const std::vector<char>& after) {
    rewind(log);
    late_.emplace(log);
    once(Order::forward);
    late_->launch_ends();
    late_.reset();
    compare(log, after, "a missing __threadfence: a block has read too early, or without a fence before, ");
  }

  static void rewind(const WriteLog& log) {
    for (size_t i = 0; i < log.count; ++i) std::memcpy(log.pages[i].at, log.pages[i].before, kPage);
  }

  // `after` holds the pages that the first run wrote; a later run may write other pages.
  void compare(const WriteLog& log, const std::vector<char>& after, const std::string& what) {
    for (size_t i = 0; i < log.count; ++i) {
      const char* wanted = (i + 1) * kPage <= after.size() ? &after[i * kPage] : log.pages[i].before;
      if (const char* differ = first_difference(log.pages[i].at, wanted))
        throw Fault(cudaErrorLaunchFailure, what + device_.memory.describe(differ));
    }
  }

  const Kernel& kernel_;
  Device& device_;
  SharedRange shared_;
  Footprint& footprint_;
  std::optional<LateWrites> late_;
};

// Selects the first launches of each kernel and shape. Later launches may have other values: every launch whose number is a
// power of 2 is selected as well.
bool wants_all_orders(const Kernel& kernel) {
  if (settings().schedules < 2) return false;
  const uint64_t threads =
      uint64_t{kernel.block.x} * kernel.block.y * kernel.block.z * kernel.grid.x * kernel.grid.y * kernel.grid.z;
  if (threads > kSmall) return false;
  static auto* seen = new std::unordered_map<const void*, std::map<uint64_t, uint64_t>>;
  const uint64_t shape = (uint64_t{kernel.block.x} << 40) ^ (uint64_t{kernel.block.y} << 52) ^
                         (uint64_t{kernel.grid.x} << 20) ^ (uint64_t{kernel.grid.y} << 10) ^ kernel.grid.z;
  const uint64_t n = ++(*seen)[kernel.function][shape];
  return n <= settings().repeats || std::has_single_bit(n);
}

constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::shuffled};
}  // namespace

#ifdef __clang__
SharedRange shared_range() { return {__start_simt_shared, static_cast<size_t>(__stop_simt_shared - __start_simt_shared)}; }
#else
SharedRange shared_range() {
  of_this_module = 1;  // creates the thread's variables
  Search search{reinterpret_cast<uintptr_t>(&shared_range), {}};
  dl_iterate_phdr(look_at_module, &search);
  return search.found;
}
#endif

// Returns "kernel NAME(TYPES)"; the types distinguish instances of one generic source line.
std::string with_kernel(const Kernel& kernel, const std::string& what) {
  std::string types = kernel.signature;  // "... [with P = {float*, int}]", "... [P = <float *, int>]"
  const size_t from = types.find("P = ");
  types = from == std::string::npos || types.size() < from + 6 ? "" : types.substr(from + 5, types.size() - from - 7);
  return std::string("kernel ") + kernel.name + "(" + types + "): " + what;
}

void execute(const Kernel& kernel, Device& device, SharedRange shared) {
  const uint64_t n = launch_count++;
  catch_faults();
  const KernelThread here;
  try {
    Run run(kernel, device, shared);
    if (wants_all_orders(kernel)) run.in_all_orders();
    else run.once(settings().schedules < 2 ? Order::forward : kOrders[n % 3]);
  } catch (const Fault& fault) {
    throw Fault(fault.error(), with_kernel(kernel, fault.what()));
  }
}

Refusal refusal(const Kernel& kernel) {
  const dim3 &g = kernel.grid, &b = kernel.block;
  const auto refused = [&](cudaError_t error, const std::string& why) {
    return Refusal{error, with_kernel(kernel, "launch refused: " + why)};
  };
  const auto shape = [](const dim3& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z)
    return refused(cudaErrorInvalidConfiguration, "grid " + shape(g) + " of blocks " + shape(b) + " has no threads");
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || uint64_t{b.x} * b.y * b.z > 1024)
    return refused(cudaErrorInvalidConfiguration, "a block has 1024 threads at most, and 64 in z; this is " + shape(b));
  if (g.x > 0x7fffffff || g.y > 65535 || g.z > 65535)
    return refused(cudaErrorInvalidConfiguration,
                   "a grid has 2147483647 x 65535 x 65535 blocks at most; this is " + shape(g));
  cudaFuncAttributes attributes{};
  function_attributes(&attributes, kernel.function);
  if (kernel.dynamic_bytes > static_cast<size_t>(attributes.maxDynamicSharedSizeBytes))
    return refused(cudaErrorInvalidValue, std::to_string(kernel.dynamic_bytes) + " bytes of dynamic shared memory, of " +
                                              std::to_string(attributes.maxDynamicSharedSizeBytes) + " allowed");
  return {};
}

void* dynamic_shared() { return dynamic_begin; }
uint64_t launches() { return launch_count; }
uint64_t schedules() { return schedule_count; }

}  // namespace simt
