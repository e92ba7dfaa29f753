#include <sdk/conformance/host.hpp>

#include <cstdio>

namespace plugrad::conformance {
namespace {

struct VerboseHost : plugrad_host {
  bool verbose;
};

void take_report(const plugrad_host*, plugrad_status status, const char* message) {
  Reports& reports = thread_reports();
  ++reports.count;
  reports.status = status;
  reports.message = message ? message : "";
}

void take_log(const plugrad_host* host, uint32_t level, const char* message) {
  if (static_cast<const VerboseHost*>(host)->verbose)
    std::fprintf(stderr, "log %u: %s\n", level, message ? message : "(null)");
}

const void* no_extension(const plugrad_host*, const char*) { return nullptr; }

}  // namespace

Reports& thread_reports() {
  thread_local Reports reports;
  return reports;
}

const plugrad_host* make_host(bool verbose) {
  static const VerboseHost quiet{
      {sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts, take_report, take_log, no_extension}, false};
  static const VerboseHost loud{
      {sizeof(plugrad_host), PLUGRAD_REVISION, plugrad_layouts, take_report, take_log, no_extension}, true};
  return verbose ? &loud : &quiet;
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
    default: return "a status that does not exist";
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
