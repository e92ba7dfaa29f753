// The findings of earlier probes, kept in the user's cache directory: $XDG_CACHE_HOME/plugrad, or ~/.cache/plugrad.
#pragma once
#include <process/shared_object.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plugrad::verdicts {

// The findings about a file.
struct Verdict {
  std::string path;
  FileIdentity file;
  bool loads = false, counts = false;  // a probe of this depth succeeded
  std::map<uint32_t, bool> opens;      // by the device's number: a probe opened the device
  std::string fault;                   // the fault found by a probe, with its date; "" without a fault
};

// Returns the findings about this very file; an empty verdict without findings.
Verdict read(const std::string& path, const FileIdentity& identity);
// Replaces the findings about a path. Does nothing if the directory cannot be written: the next process probes again.
void write(const Verdict& verdict) noexcept;
// The verdicts with a fault, sorted by path.
std::vector<Verdict> faults();
// Forgets the fault of a path. Returns whether the path had a fault.
bool forget(const std::string& path);

}  // namespace plugrad::verdicts
