#include <plugrad/runtime/policy.hpp>

#include <core/runtime/device_state.hpp>
#include <core/runtime/observe/observed.hpp>
#include <core/runtime/plugins/platform.hpp>

#include <string_view>

namespace plugrad {
namespace {
Fallback fallback_of_environment() {
  const char* text = platform::environment("PLUGRAD_FALLBACK");
  const std::string_view wanted = text ? text : "error";
  if (wanted == "warn") return Fallback::warn;
  if (wanted == "allow") return Fallback::allow;
  if (wanted != "error")
    throw Error(Code::invalid, "PLUGRAD_FALLBACK='" + std::string(wanted) + "': error, warn or allow expected");
  return Fallback::error;
}
std::atomic<Fallback>& policy() {
  static std::atomic<Fallback>& p = *new std::atomic<Fallback>(fallback_of_environment());
  return p;
}
void set_mode(uint32_t bit, bool on) {
  if (on) modes |= bit;
  else modes &= ~bit;
}
}  // namespace

void check_environment() {
  fallback_of_environment();
  observe::start();
  const char* sync = platform::environment("PLUGRAD_SYNC");
  if (sync && std::string_view(sync) != "0" && std::string_view(sync) != "1")
    throw Error(Code::invalid, "PLUGRAD_SYNC='" + std::string(sync) + "': 0 or 1 expected");
}

void set_fallback(Fallback wanted) { policy() = wanted; }
Fallback fallback() { return policy(); }
void set_deterministic(bool on) { set_mode(PLUGRAD_DETERMINISTIC, on); }
bool deterministic() { return modes & PLUGRAD_DETERMINISTIC; }
void set_tf32(bool on) { set_mode(PLUGRAD_TF32, on); }
bool tf32() { return modes & PLUGRAD_TF32; }

}  // namespace plugrad
