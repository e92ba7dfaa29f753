// The results of a run, as text, as JSON and as JUnit's XML.
#pragma once
#include <sdk/conformance/result.hpp>

#include <deque>
#include <ostream>

namespace plugrad::conformance {

struct Found {
  std::string name;
  Result result;
  bool expected = false;  // the user expected the failure
};

struct Summary {
  std::string plugin, backend, version, device;
  std::string no_device;               // the reason why there is no device
  std::string command;                 // runs a case again, with the case's name at its end
  std::string trial;                   // the command to train again
  std::deque<Found> found;             // one per finished case
  std::vector<std::string> not_begun;  // the cases not begun within the budget
  std::vector<MatrixRow> matrix;
  std::vector<std::string> missing_of_tier0;
  bool whole = true;  // whether all cases ran
  int highest = -1;   // the highest level whose cases all ran; -1: none

  uint64_t cases() const;
  uint64_t failures() const;  // without the failures expected by the user
};

// A text as a string of JSON.
std::string quoted(const std::string& text);
void write_text(std::ostream& out, const Summary& summary);
void write_json(std::ostream& out, const Summary& summary);
// Writes JUnit's XML for CI systems: a test case for each case.
void write_junit(std::ostream& out, const Summary& summary);

}  // namespace plugrad::conformance
