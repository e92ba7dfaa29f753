#include <core/runtime/plugins/foreign.hpp>

#include <plugrad/sdk/driver.h>
#include <core/runtime/local.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/log.hpp>

#include <cxxabi.h>
#include <exception>

namespace plugrad {

plugrad_status report_exception() {
  std::string what = "an exception";
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& error) {
    what = platform::type_name(typeid(error)) + " (" + error.what() + ")";
  } catch (...) {
    if (const std::type_info* type = abi::__cxa_current_exception_type())
      what = "a value of type " + platform::type_name(*type);
  }
  local().report = "it threw " + what + ": a plugin must not throw";
  return PLUGRAD_INTERNAL;
}

void log_exception(const std::string& device, const char* function) noexcept {
  report_exception();
  log(LogLevel::error, "[" + device + "] its plugin breaks the contract: " + function + ": " + take_report());
}

void throw_breach(const std::string& device, const std::string& why) {
  throw Error(Code::internal, "[" + device + "] its plugin breaks the contract: " + why);
}

void throw_exception_breach(const std::string& device, const char* function) {
  throw_breach(device, std::string(function) + ": " + take_report());
}

const void* extension_of(const plugrad_backend& table, const char* name) {
  if (!table.get_extension) return nullptr;
  return contained_value(table.name, "get_extension", [&] { return table.get_extension(name); });
}

bool brings_signal_handlers(const plugrad_backend& table) noexcept {
  try {
    const auto* const driver = static_cast<const plugrad_driver*>(extension_of(table, PLUGRAD_DRIVER));
    return driver && driver->struct_size >= sizeof *driver && driver->brings & PLUGRAD_DRIVER_SIGNALS;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace plugrad
