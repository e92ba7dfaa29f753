#include <sdk/conformance/host.hpp>

#include <plugrad/sdk/communicator.h>
#include <sdk/conformance/message.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace plugrad::conformance {
namespace {

// Never destroyed: a plugin may log while the process ends.
struct LogListener {
  std::mutex mutex;
  std::function<void(const std::string&)> function;
};
LogListener& log_listener() {
  static LogListener& listener = *new LogListener;
  return listener;
}

void take_report(const plugrad_host*, plugrad_status status, const char* message) {
  Reports& reports = thread_reports();
  ++reports.count;
  reports.status = status;
  reports.message = readable(message ? message : "");
}

void take_log(const plugrad_host*, uint32_t level, const char* message) {
  const std::scoped_lock lock(log_listener().mutex);
  if (log_listener().function)
    log_listener().function(std::to_string(level) + ": " + readable(message ? message : "(null)"));
}

const void* no_extension(const plugrad_host*, const char*) { return nullptr; }

}  // namespace

Reports& thread_reports() {
  thread_local Reports reports;
  return reports;
}

const plugrad_host* make_host() {
  static const plugrad_host host{sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts,
                                 take_report,          take_log,         no_extension};
  return &host;
}

void on_log(std::function<void(const std::string&)> listener) {
  const std::scoped_lock lock(log_listener().mutex);
  log_listener().function = std::move(listener);
}

const char* status_name(plugrad_status status) {
  switch (status) {
    case PLUGRAD_OK: return "OK";
    case PLUGRAD_INVALID: return "INVALID";
    case PLUGRAD_UNSUPPORTED: return "UNSUPPORTED";
    case PLUGRAD_OUT_OF_MEMORY: return "OUT_OF_MEMORY";
    case PLUGRAD_INDEX_ERROR: return "INDEX_ERROR";
    case PLUGRAD_DEVICE_ERROR: return "DEVICE_ERROR";
    case PLUGRAD_DEVICE_LOST: return "DEVICE_LOST";
    case PLUGRAD_INTERNAL: return "INTERNAL";
    case PLUGRAD_PEER_LOST: return "PEER_LOST";
    case PLUGRAD_TIMED_OUT: return "TIMED_OUT";
    default: return "a status that does not exist";
  }
}

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return std::string("an exception: ") + error.what();
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    const std::unique_ptr<char, void (*)(void*)> name(
        type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr) : nullptr, std::free);
    return std::string("a value of type ") + (name ? name.get() : "unknown");
  }
}

void begin_call() { thread_reports() = Reports{}; }

Outcome end_call(const char* what, plugrad_status status) {
  const Reports& reports = thread_reports();
  if (status == PLUGRAD_OK) return {};
  if (!reports.count)
    throw Breach(std::string(what) + " returned " + status_name(status) +
                 " without host->report: report the reason on the calling thread first");
  if (reports.message.empty())
    throw Breach(std::string(what) + " returned " + status_name(status) + " and reported an empty message");
  if (reports.status != status)
    throw Breach(std::string(what) + " returned " + status_name(status) + " but reported " + status_name(reports.status));
  return {status, reports.message};
}

}  // namespace plugrad::conformance
