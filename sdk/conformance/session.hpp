// A run: the plugin's device under test, the settings, and the matrix of results.
#pragma once
#include <sdk/conformance/arrangement.hpp>
#include <sdk/conformance/device.hpp>
#include <sdk/conformance/plugin.hpp>
#include <sdk/conformance/tally.hpp>

#include <functional>
#include <iosfwd>
#include <optional>

namespace plugrad::conformance {

struct Settings {
  uint64_t seed = 1;
  uint32_t device = 0;
  OptionList options;
  std::vector<uint8_t> dtypes;  // selects the ops' cases with one of these dtypes; empty: all cases
  std::vector<uint32_t> timed;  // the ops for --perf; empty: all ops
  std::string trace;            // times calls of the shapes in this trace, for --perf
  std::string replay;           // the file of the case `replay`; the case does not run without a file
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
  uint32_t devices;  // the number stored by the plugin's count
  Device& device;
  std::vector<MatrixRow> matrix = {};
  // The stream of the last op's cases, unless one of the cases failed. The next op continues on the stream, because a plugin
  // may hold much memory for each stream.
  std::optional<Queue> queue = {};
};

struct Case {
  std::string name;
  std::function<void(Session&, Tally&)> function;
};

// All cases: of the contract, memory, streams, threads and the extensions native.h, fusion.h, list.h and forms.h, and a case
// for each op.
const std::vector<Case>& all_cases();
std::vector<Case> contract_cases();
std::vector<Case> transcription_cases();
std::vector<Case> replay_cases();  // runs only if the settings name a file
std::vector<Case> memory_cases();
std::vector<Case> page_cases();
std::vector<Case> leak_cases();
std::vector<Case> stream_cases();
std::vector<Case> time_cases();
std::vector<Case> scale_cases();
std::vector<Case> native_cases();
std::vector<Case> failure_cases();
std::vector<Case> thread_cases();
std::vector<Case> op_cases();
std::vector<Case> fusion_cases();
std::vector<Case> list_cases();
std::vector<Case> batch_cases();
std::vector<Case> form_cases();

// Runs a case. A Breach ends it and counts as a failure.
void run_case(const Case& one, Session& session, Tally& tally);

// Whether the plugin has a kernel for this question: for dense operands, or for immediates if the op takes only immediates.
bool claimed(const Session& session, const Question& question);
Question question_for(uint32_t opcode, uint8_t dtype, uint32_t flags = 0);
// Runs the problems of a cell and returns the cell's result. The tally belongs to this cell alone.
Cell check_cell(Session& session, Tally& tally, const Question& question, Column column, Queue& queue);

// Returns the ops of tier 0 missing in the plugin for f32, with i64 indices and bool masks.
std::vector<std::string> missing_of_tier0(const Session& session);
// Writes a line for each op: its name and the dtypes of the device's kernels; of a conversion, the dtypes of the results.
void write_kernels(std::ostream& out, Session& session);
// Writes a report of times as JSON: see perf.hpp.
void write_perf(std::ostream& out, Session& session);

// Submits work of some length and returns, for a process that ends meanwhile. Does nothing on a device without streams.
void leave_in_flight(Session& session);

// The result of count: the number of devices, or the reason why there are none.
struct Counted {
  Outcome outcome;
  uint32_t devices = 0;
  std::string reason;
};
Counted count_devices(const Plugin& plugin, const plugrad_host* host);

}  // namespace plugrad::conformance
