// Loads a plugin in a process of its own first, so that a damaged file cannot end or stop this one.
#pragma once
#include <core/runtime/plugins/probe_record.hpp>
#include <process/shared_object.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::probe {

struct Outcome {
  bool sound = true;       // the core may go on
  Step step = Step::done;  // where it is not sound, the step that failed
  std::string reason;      // why it is not sound
};

// Loads the plugin in a child process as far as depth says, unless PLUGRAD_PROBE=off, or this very file passed before and
// PLUGRAD_PROBE is not "always". A file that crashed, hung or ended the process stays in quarantine: it is refused without
// a new attempt until it changes or somebody clears the quarantine. Where no child can be started, only "always" refuses.
Outcome check(const std::string& path, const FileIdentity& identity, Depth depth);
// The same as far as opening a device with these options. A device that opened once is not tried again, whatever its
// options.
Outcome check_open(const std::string& path, const FileIdentity& identity, uint32_t device,
                   const std::vector<std::pair<std::string, std::string>>& options);

// How long a trial of this depth may take: PLUGRAD_PROBE_SECONDS, or else 10 s to load, and 60 s to count or open devices.
std::chrono::seconds deadline(Depth depth);

}  // namespace plugrad::probe
