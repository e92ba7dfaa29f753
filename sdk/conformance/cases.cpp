#include <sdk/conformance/running.hpp>
#include <sdk/conformance/session.hpp>

namespace plugrad::conformance {

const std::vector<Case>& all_cases() {
  static const std::vector<Case> list = [] {
    std::vector<Case> all;
    for (std::vector<Case> (*part)() : {contract_cases, transcription_cases, memory_cases, leak_cases, page_cases,
                                        scale_cases, stream_cases, time_cases, native_cases, failure_cases, op_cases,
                                        fusion_cases, list_cases, batch_cases, form_cases, thread_cases, replay_cases})
      for (Case& one : part()) all.push_back(std::move(one));
    return all;
  }();
  return list;
}

void run_case(const Case& one, Session& session, Tally& tally) {
  note_running(one.name);
  try {
    one.function(session, tally);
  } catch (const Breach& breach) {
    tally.fail(breach.what());
  } catch (...) {
    tally.fail("a function of the plugin threw " + exception_text());
  }
}

Counted count_devices(const Plugin& plugin, const plugrad_host* host) {
  Counted counted;
  counted.outcome = attempt("count", [&] { return plugin.table->count(host, &counted.devices); });
  if (counted.outcome.ok()) counted.reason = thread_reports().message;
  return counted;
}

}  // namespace plugrad::conformance
