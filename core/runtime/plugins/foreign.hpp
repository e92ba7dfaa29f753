// Calls of a plugin's functions. A plugin must not throw; if it does, the exception must not pass through the core: it would
// leave the core's locks locked.
#pragma once
#include <plugrad/sdk/abi.h>

#include <string>
#include <utility>

namespace plugrad {

// Turns the exception in flight into a report of this thread, for take_report: "it threw ...: a plugin must not throw".
// Returns PLUGRAD_INTERNAL. Rethrows the unwinding of a cancelled thread, so that its cancellation goes on.
[[gnu::cold, gnu::noinline]] plugrad_status report_exception();

// Logs the exception in flight.
[[gnu::cold, gnu::noinline]] void log_exception(const std::string& device, const char* function) noexcept;

// Calls a plugin's function with a status as its result. An exception becomes the status PLUGRAD_INTERNAL with a report.
template <class Function, class... Arguments>
[[gnu::always_inline]] inline plugrad_status contained(Function* function, Arguments... arguments) {
  try {
    return function(arguments...);
  } catch (...) {
    return report_exception();
  }
}

// Calls a plugin's function that cannot fail. An exception becomes a line of the log.
template <class Function, class... Arguments>
void contained_quietly(const std::string& device, const char* name, Function* function, Arguments... arguments) noexcept {
  try {
    function(arguments...);
  } catch (...) {
    log_exception(device, name);
  }
}

// Throws Error (internal) for a breach of the contract: "[npu:0] its plugin breaks the contract: alloc ...".
[[noreturn]] void throw_breach(const std::string& device, const std::string& why);

// The same for the last exception of report_exception.
[[noreturn]] void throw_exception_breach(const std::string& device, const char* function);

// Calls a plugin's function with any other type of result. Throws Error (internal) if the function throws.
template <class Call> auto contained_value(const std::string& device, const char* function, Call call) {
  try {
    return call();
  } catch (...) {
    report_exception();
  }
  throw_exception_breach(device, function);
}

// Returns the plugin's extension with this name, or null. Throws Error (internal) if the plugin throws.
const void* extension_of(const plugrad_backend& table, const char* name);
// Whether the plugin says that its driver installs signal handlers. False if its get_extension throws.
bool brings_signal_handlers(const plugrad_backend& table) noexcept;

}  // namespace plugrad
