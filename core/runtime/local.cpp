#include <core/runtime/local.hpp>

#include <core/runtime/dispatch/printable.hpp>
#include <core/runtime/memory/small_blocks.hpp>
#include <core/runtime/plugins/platform.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace plugrad {
namespace {
struct Census {
  std::vector<Local*> living;
  std::array<uint64_t, kMaxDevices> retired{};  // kernel calls of ended threads
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

std::mutex& census_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}
std::mutex& depot_mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}

Local::Local() {
  Census& c = census();
  const std::lock_guard lock(census_mutex());
  c.living.push_back(this);
}

Local::~Local() {
  objects.flush();
  flush_small(*this);
  Census& c = census();
  const std::lock_guard lock(census_mutex());
  std::erase(c.living, this);
  for (uint32_t i = 0; i < kMaxDevices; ++i) c.retired[i] += kernels[i];
}

[[gnu::noinline, gnu::cold]] Local& make_local() {
  static platform::ThreadEnd& end = *new platform::ThreadEnd(end_thread);
  auto made = std::make_unique<Local>();
  // libstdc++ allocates a thread's state of exceptions at their first use, and the process ends if memory is short then, as
  // when std::bad_alloc is the first exception.
  [[maybe_unused]] const volatile int first_use = std::uncaught_exceptions();
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

std::string take_report() {
  constexpr size_t kMost = 4096;
  return printable(std::exchange(local().report, {}), kMost);
}

std::string status_text(plugrad_status status, const std::string& where, const std::string& why) {
  const std::string otherwise = "the plugin returned status " + std::to_string(status) + " and did not say why";
  return "[" + where + "] " + (why.empty() ? otherwise : why);
}

void throw_status(plugrad_status status, const std::string& where, const std::string& why) {
  const bool known = status >= PLUGRAD_INVALID && status <= PLUGRAD_INTERNAL;
  // Backends may name the op themselves.
  const std::string named = "[" + where + "] ";
  const std::string reason = why.starts_with(named) ? why.substr(named.size()) : why;
  throw Error(known ? static_cast<Code>(status) : Code::internal, status_text(status, where, reason));
}

}  // namespace plugrad
