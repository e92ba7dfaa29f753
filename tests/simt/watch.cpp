#include <tests/simt/watch.hpp>

#include <cmath>
#include <cstring>

namespace simt {
namespace {

// Tolerances for other orders: a float sum may differ by a fraction of the largest term, a result computed from such sums by
// a fraction of its own size.
constexpr double kOfTheSum = 1e-4, kOfTheResult = 1e-3;

template <class T> bool is_close(const char* at, const char* wanted) {
  T a, b;
  std::memcpy(&a, at, sizeof a);
  std::memcpy(&b, wanted, sizeof b);
  if (std::isnan(a) && std::isnan(b)) return true;
  const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
  if (watch().sums.contains(at)) return apart <= kOfTheSum * watch().largest;
  return apart <= kOfTheResult * std::max(std::abs(static_cast<double>(a)), std::abs(static_cast<double>(b)));
}

}  // namespace

Watch& watch() {
  static auto* one = new Watch;
  return *one;
}

void Watch::begin(Device& on) {
  device = &on;
  atomics.clear();
  sums.clear();
  adds = false;
  largest = 0;
  on_fence = nullptr;
}

const char* first_difference(const char* page, const char* wanted) {
  if (!std::memcmp(page, wanted, kPage)) return nullptr;
  const size_t step = watch().adds ? watch().sum_bytes : 1;
  for (size_t i = 0; i < kPage; i += step) {
    if (!std::memcmp(page + i, wanted + i, step)) continue;
    if (!watch().adds) return page + i;
    if (!(step == sizeof(float) ? is_close<float>(page + i, wanted + i) : is_close<double>(page + i, wanted + i)))
      return page + i;
  }
  return nullptr;
}

LateWrites::LateWrites(WriteLog& log) : log_(log), visible_(log.count * kPage) {
  show_all();
  watch().on_fence = [this] { show_all(); };
}

void LateWrites::show_all() {
  for (size_t i = 0; i < visible_.size() / kPage; ++i) std::memcpy(&visible_[i * kPage], log_.pages[i].at, kPage);
}

void LateWrites::block_ends() {
  for (size_t i = 0; i < visible_.size() / kPage; ++i) {
    char *const page = log_.pages[i].at, *const shown = &visible_[i * kPage];
    for (size_t word = 0; word < kPage; word += sizeof(uint32_t)) {
      if (!std::memcmp(page + word, shown + word, sizeof(uint32_t))) continue;
      if (watch().atomics.contains(page + word)) {
        std::memcpy(shown + word, page + word, sizeof(uint32_t));
        continue;
      }
      for (size_t k = word; k < word + sizeof(uint32_t); ++k)
        if (page[k] != shown[k]) late_.push_back({i, k, page[k]});
      std::memcpy(page + word, shown + word, sizeof(uint32_t));
    }
  }
}

void LateWrites::launch_ends() {
  watch().on_fence = nullptr;
  for (const Byte& byte : late_) log_.pages[byte.page].at[byte.offset] = byte.value;
}

void note_atomic(void* address, size_t bytes) {
  Watch& w = watch();
  if (w.device->memory.owns(address)) {
    for (size_t i = 0; i < bytes; i += sizeof(uint32_t)) w.atomics.insert(static_cast<char*>(address) + i);
  } else if (pinned().covers(address, bytes)) {
    Block::current().blame(cudaErrorIllegalAddress,
                           "an atomic operation on pinned host memory, which works only if the bus supports them");
    Block::current().abandon();
  }
}

void note_sum(void* address, size_t bytes, double magnitude) {
  Watch& w = watch();
  w.adds = true;
  w.sum_bytes = bytes;
  w.largest = std::max(w.largest, magnitude);
  if (w.device->memory.owns(address)) w.sums.insert(address);
}

void fence() {
  if (watch().on_fence) watch().on_fence();
}

}  // namespace simt
