// The results of a run, as text and as JSON.
#pragma once
#include <sdk/conformance/session.hpp>

#include <deque>
#include <ostream>

namespace plugrad::conformance {

struct Found {
  std::string name;
  Tally tally;
  Found(std::string case_name, size_t lines_kept) : name(std::move(case_name)), tally(lines_kept) {}
};

struct Summary {
  std::string plugin, backend, version, device;
  std::string no_device;  // the reason why there is no device
  const Session* session = nullptr;
  std::deque<Found> found;  // one per case that ran
  std::vector<std::string> missing_of_tier0;
  bool whole = true;  // whether all cases ran

  uint64_t cases() const;
  uint64_t failures() const;
};

void write_text(std::ostream& out, const Summary& summary);
void write_json(std::ostream& out, const Summary& summary);

}  // namespace plugrad::conformance
