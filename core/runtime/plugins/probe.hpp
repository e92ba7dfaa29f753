// Loads a plugin in a process of its own first, so that a damaged file cannot end or stop this process.
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
  Step step = Step::done;  // if not sound, the failed step
  std::string reason;      // why it is not sound
};

// Loads the plugin in a child process as far as depth says, unless PLUGRAD_PROBE=off, or this very file passed before and
// PLUGRAD_PROBE is not "always". If a file crashed, hung or ended the process, it stays in quarantine: it is refused without
// a new attempt until it changes or somebody clears the quarantine. If no child can be started, only "always" refuses.
Outcome check(const std::string& path, const FileIdentity& identity, Depth depth);
// The same as far as opening a device with these options. If a device opened once, it is not tried again, with any options.
Outcome check_open(const std::string& path, const FileIdentity& identity, uint32_t device,
                   const std::vector<std::pair<std::string, std::string>>& options);

// The time limit for a trial of this depth: PLUGRAD_PROBE_SECONDS, or else 10 s to load, and 60 s to count or open devices.
std::chrono::seconds deadline(Depth depth);

}  // namespace plugrad::probe
