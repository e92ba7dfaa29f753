// Checks a plugin's file before anything loads it.
#pragma once
#include <cstdint>
#include <string>

namespace plugrad {

// Distinguishes a file from all other files, and from itself after a change.
struct FileIdentity {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified = 0, changed = 0;  // nanoseconds since the epoch

  bool operator==(const FileIdentity&) const = default;
};

// The identity of the file at path, links followed; all zero if no file is there.
FileIdentity identity_of(const std::string& path);
// Why a file is not a loadable shared object for this machine and process, or "". Reads headers and names of symbols only:
// loading a damaged file can crash. Stores the identity of the file read.
std::string check_shared_object(const std::string& path, FileIdentity& identity);

}  // namespace plugrad
