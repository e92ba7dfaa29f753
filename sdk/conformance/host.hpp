// The host of a plugin under test, and the plugin's reports to the host.
#pragma once
#include <plugrad/sdk/abi.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace plugrad::conformance {

// The plugin broke a rule of the contract; what() names the rule.
class Breach : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The device has no memory left for a case.
class NoRoom : public Breach {
 public:
  using Breach::Breach;
};

// The arguments of the last call of host->report on this thread.
struct Reports {
  uint64_t count = 0;
  plugrad_status status = PLUGRAD_OK;
  std::string message;
};
Reports& thread_reports();

// Returns a host of revision 0. The host lives as long as the process.
const plugrad_host* make_host();
// Sets the function for the lines of the plugin's log, called from any thread; an empty function drops them.
void on_log(std::function<void(const std::string&)> listener);

const char* status_name(plugrad_status status);

// The result of a call into the plugin.
struct Outcome {
  plugrad_status status = PLUGRAD_OK;
  std::string message;  // reported by this call
  bool ok() const { return status == PLUGRAD_OK; }
  std::string text() const { return std::string(status_name(status)) + (message.empty() ? "" : ": " + message); }
};

void begin_call();
// Throws Breach if status is not OK and this thread reported nothing since begin_call.
Outcome end_call(const char* what, plugrad_status status);

// Describes the current exception.
std::string exception_text();

// Calls function. Throws Breach if it throws, or returns a status other than OK without reporting a message first.
template <class F> Outcome attempt(const char* what, F function) {
  begin_call();
  plugrad_status status;
  try {
    status = function();
  } catch (...) {
    throw Breach(std::string(what) + " threw " + exception_text());
  }
  return end_call(what, status);
}

}  // namespace plugrad::conformance
