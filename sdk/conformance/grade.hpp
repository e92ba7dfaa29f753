// The progress of a plugin: six levels. Each level needs the levels below it.
#pragma once
#include <sdk/conformance/summary.hpp>

#include <string>

namespace plugrad::conformance {

constexpr int kLevels = 6, kTrains = 3, kAsynchronous = 5;

// "L2 tier 0".
std::string level_text(int level);
// Returns the level of the case with this name; -1 if no level needs the case: the ops of tier 1, which the core can
// compose, and replays.
int level_of(const std::string& name);

struct Grade {
  int level = -1;    // the highest level reached; -1: none
  std::string next;  // why the next level is not reached; "" if all are, or if its cases did not run
  // Ops of tier 1 with a kernel and without a failure, and all of them; 0 if their cases did not run.
  int tier1 = 0, tier1_ops = 0;
};

// `highest`: the highest level whose cases ran.
Grade grade_of(const Summary& summary, int highest);
// As text, in one or two lines.
std::string text_of(const Grade& grade);
// As a picture in SVG, for a README. certificate: what was checked, by what and when, as the picture's description.
std::string badge_of(const Grade& grade, const std::string& certificate);

}  // namespace plugrad::conformance
