// The host that a plugin under test sees, and what the plugin told it.
#pragma once
#include <plugrad/sdk/abi.h>

#include <stdexcept>
#include <string>

namespace plugrad::conformance {

// The plugin broke a rule of the contract; what() says which.
class Breach : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What host->report was last called with on this thread.
struct Reports {
  uint64_t count = 0;
  plugrad_status status = PLUGRAD_OK;
  std::string message;
};
Reports& thread_reports();

// A host of revision 0 that lives as long as the process. With verbose, the plugin's log goes to standard error.
const plugrad_host* make_host(bool verbose);

const char* status_name(plugrad_status status);

// What a call into the plugin answered.
struct Outcome {
  plugrad_status status = PLUGRAD_OK;
  std::string message;  // reported by this call
  bool ok() const { return status == PLUGRAD_OK; }
  std::string text() const { return std::string(status_name(status)) + (message.empty() ? "" : ": " + message); }
};

void begin_call();
// Throws Breach where status is not OK and nothing was reported since begin_call on this thread.
Outcome end_call(const char* what, plugrad_status status);

// Calls function and holds it to the rule that a status other than OK is reported first, with a message.
template <class F> Outcome attempt(const char* what, F function) {
  begin_call();
  return end_call(what, function());
}

}  // namespace plugrad::conformance
