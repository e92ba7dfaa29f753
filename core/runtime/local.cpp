#include <core/runtime/local.hpp>

#include <core/runtime/platform.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace plugrad {
namespace {
struct Census {
  std::vector<Local*> living;
  std::array<uint64_t, kMaxDevices> retired{};  // calls of threads that ended
};
Census& census() {
  static Census& c = *new Census;
  return c;
}

void end_thread(void* own) {
  delete static_cast<Local*>(own);
  tls = nullptr;
}
}  // namespace

std::mutex& leaf_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}
std::mutex& census_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}
std::mutex& depot_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}

Depot<Storage>& storage_depot(uint32_t list) {
  static Depot<Storage>* const depots = new Depot<Storage>[kStorageLists];
  return depots[list];
}

Local::Local() {
  Census& c = census();
  const std::lock_guard lock(census_mutex());
  c.living.push_back(this);
}

Local::~Local() {
  headers.flush();
  nodes.flush();
  for (uint32_t list = 0; list < kStorageLists; ++list)
    storages[list].flush(small_capacity(list % kSizeClasses), storage_depot(list));
  Census& c = census();
  const std::lock_guard lock(census_mutex());
  std::erase(c.living, this);
  for (uint32_t i = 0; i < kMaxDevices; ++i) c.retired[i] += kernels[i];
}

[[gnu::noinline, gnu::cold]] Local& make_local() {
  static platform::ThreadEnd& end = *new platform::ThreadEnd(end_thread);
  auto made = std::make_unique<Local>();
  end.set(made.get());
  return *(tls = made.release());
}

uint64_t kernels_called(uint32_t ordinal) {
  Census& c = census();
  const std::lock_guard lock(census_mutex());
  uint64_t calls = c.retired[ordinal];
  for (const Local* each : c.living) calls += each->kernels[ordinal];
  return calls;
}

std::string take_report() { return std::exchange(local().report, {}); }

void throw_status(plugrad_status status, const std::string& where, const std::string& why) {
  const bool known = status >= PLUGRAD_INVALID && status <= PLUGRAD_INTERNAL;
  const std::string fallback = "the plugin answered status " + std::to_string(status) + " and did not say why";
  throw Error(known ? Code(status) : Code::internal, "[" + where + "] " + (why.empty() ? fallback : why));
}

}  // namespace plugrad
