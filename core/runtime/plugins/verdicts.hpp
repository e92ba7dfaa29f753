// What earlier probes found, kept in the user's cache directory: $XDG_CACHE_HOME/plugrad, or ~/.cache/plugrad.
#pragma once
#include <process/shared_object.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plugrad::verdicts {

// What is known of a file.
struct Verdict {
  std::string path;
  FileIdentity file;
  bool loads = false, counts = false;  // a probe of that depth succeeded
  std::map<uint32_t, bool> opens;      // by the device's number: so did one that opened it
  std::string fault;                   // what a probe found wrong, with its date; "" if nothing
};

// Returns what is known of this very file; an empty verdict if nothing is.
Verdict read(const std::string& path, const FileIdentity& identity);
// Replaces what is known of a path. Does nothing if the directory cannot be written: the next process probes again.
void write(const Verdict& verdict) noexcept;
// The verdicts with a fault, sorted by path.
std::vector<Verdict> faults();
// Forgets the fault of a path. Returns whether there was one.
bool forget(const std::string& path);

}  // namespace plugrad::verdicts
