// One plugin's device under test, what is wanted of the run, and the matrix that it fills.
#pragma once
#include <sdk/conformance/arrangement.hpp>
#include <sdk/conformance/device.hpp>
#include <sdk/conformance/plugin.hpp>
#include <sdk/conformance/tally.hpp>

#include <functional>

namespace plugrad::conformance {

struct Settings {
  uint64_t seed = 1;
  uint32_t device = 0;
  OptionList options;
  std::string only;  // a case, or an op
  bool require_tier0 = false, verbose = false;
};

enum class Cell : uint8_t { blank, ok, declined, failed, impossible };

struct MatrixRow {
  Question question;
  std::array<Cell, kColumns> cells{};
};

struct Session {
  const Plugin& plugin;
  const plugrad_host* host;
  const Settings& settings;
  uint32_t devices;  // how many the plugin counts
  Device& device;
  std::vector<MatrixRow> matrix = {};
};

struct Case {
  std::string name;
  std::function<void(Session&, Tally&)> function;
};

// All cases: those of the contract, memory, streams, the extension of native.h and threads, then one for each op.
const std::vector<Case>& all_cases();
std::vector<Case> contract_cases();
std::vector<Case> memory_cases();
std::vector<Case> stream_cases();
std::vector<Case> native_cases();
std::vector<Case> failure_cases();
std::vector<Case> thread_cases();
std::vector<Case> op_cases();

// Runs a case; a breach of the contract that ends it is a failure.
void run_case(const Case& one, Session& session, Tally& tally);

// Whether the plugin has a kernel at all for this question: for dense operands, or for immediates where there are no others.
bool claimed(const Session& session, const Question& question);
Question question_for(uint32_t opcode, uint8_t dtype, uint32_t flags = 0);
// Poses the problems of one cell, compares, and says what the cell is. The tally is this cell's alone.
Cell check_cell(Session& session, Tally& tally, const Question& question, Column column, Queue& queue);

// What of tier 0 the plugin lacks for f32, with i64 indices and bool masks.
std::vector<std::string> missing_of_tier0(const Session& session);

// What count answers: the number of devices, and where there are none, the reason.
struct Counted {
  Outcome outcome;
  uint32_t devices = 0;
  std::string reason;
};
Counted count_devices(const Plugin& plugin, const plugrad_host* host);

}  // namespace plugrad::conformance
