#include <sdk/conformance/summary.hpp>

#include <algorithm>
#include <cstdio>
#include <iomanip>

namespace plugrad::conformance {
namespace {

constexpr int kLabelWidth = 46;

const char* cell_text(Cell cell) {
  switch (cell) {
    case Cell::ok: return "ok";
    case Cell::declined: return "-";
    case Cell::failed: return "FAIL";
    case Cell::impossible: return ".";
    default: return "";
  }
}

const char* cell_name(Cell cell) {
  switch (cell) {
    case Cell::ok: return "ok";
    case Cell::declined: return "declined";
    case Cell::failed: return "failed";
    case Cell::impossible: return "impossible";
    default: return "blank";
  }
}

void write_matrix(std::ostream& out, const std::vector<MatrixRow>& matrix) {
  if (matrix.empty()) return;
  out << "\n" << std::left << std::setw(kLabelWidth) << "op, dtypes of outputs and inputs";
  for (const char* name : kColumnNames) out << std::setw(10) << name;
  out << "\n";
  for (const MatrixRow& row : matrix) {
    out << std::setw(kLabelWidth) << text_of(row.question);
    for (const Cell cell : row.cells) out << std::setw(10) << cell_text(cell);
    out << "\n";
  }
  out << "ok: as sdk/ops.md defines; -: declined, so the host makes dense copies; FAIL: see below; .: this op never has "
         "such "
         "operands\n";
}

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\')
      json += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) >= 0x20)
      json += c;
    else {
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    }
  }
  return json + "\"";
}

template <class List, class Text> std::string json_list(const List& list, Text text) {
  std::string json = "[";
  for (const auto& item : list) json += (json.size() > 1 ? ", " : "") + text(item);
  return json + "]";
}

std::string json_row(const MatrixRow& row) {
  std::string json = "\n    {\"op\": " + quoted(row.question.op->name) + ", \"question\": " + quoted(text_of(row.question)) +
                     ", \"cells\": {";
  for (int column = 0; column < kColumns; ++column)
    json += (column ? ", " : "") + quoted(kColumnNames[column]) + ": " + quoted(cell_name(row.cells[column]));
  return json + "}}";
}

std::string json_case(const Found& found) {
  return "\n    {\"name\": " + quoted(found.name) + ", \"cases\": " + std::to_string(found.tally.cases()) +
         ", \"failures\": " + std::to_string(found.tally.failures()) +
         ", \"lines\": " + json_list(found.tally.lines(), quoted) +
         ", \"skipped\": " + json_list(found.tally.skips(), quoted) + "}";
}

void write_case(std::ostream& out, const Found& found) {
  const Tally& tally = found.tally;
  const bool silent = found.name.starts_with("op.") && !tally.cases() && !tally.failures();
  if (silent) return;
  out << std::left << std::setw(28) << found.name << std::right << std::setw(8) << tally.cases() << " cases  ";
  out << (tally.failures() ? "FAIL" : tally.cases() ? "ok" : "skipped");
  for (const std::string& reason : tally.skips()) out << ": " << reason;
  out << "\n";
}

void write_failures(std::ostream& out, const Summary& summary) {
  for (const Found& found : summary.found) {
    for (const std::string& line : found.tally.lines()) out << "FAIL " << found.name << ": " << line << "\n";
    const uint64_t more = found.tally.failures() - found.tally.lines().size();
    if (more) out << "FAIL " << found.name << ": and " << more << " more (see --verbose)\n";
  }
}

}  // namespace

uint64_t Summary::cases() const {
  uint64_t sum = 0;
  for (const Found& one : found) sum += one.tally.cases();
  return sum;
}

uint64_t Summary::failures() const {
  uint64_t sum = 0;
  for (const Found& one : found) sum += one.tally.failures();
  return sum;
}

void write_text(std::ostream& out, const Summary& summary) {
  out << summary.plugin << ": backend '" << summary.backend << "' " << summary.version << "\n";
  if (!summary.session) {
    out << "loads, but has no device: " << summary.no_device << "\n";
    return;
  }
  out << "device: " << summary.device << "\n\n";
  for (const Found& found : summary.found) write_case(out, found);
  write_matrix(out, summary.session->matrix);
  if (summary.whole) {
    const std::vector<std::string>& missing = summary.missing_of_tier0;
    out << "tier 0: " << (missing.empty() ? "complete" : std::to_string(missing.size()) + " missing:") << "\n";
    for (const std::string& question : missing) out << "  " << question << "\n";
  }
  write_failures(out, summary);
  out << "\n" << summary.cases() << " cases, " << summary.failures() << " failures\n";
}

void write_json(std::ostream& out, const Summary& summary) {
  out << "{\n  \"plugin\": " << quoted(summary.plugin) << ",\n  \"backend\": " << quoted(summary.backend)
      << ",\n  \"version\": " << quoted(summary.version) << ",\n";
  if (!summary.session) {
    out << "  \"device\": null,\n  \"reason\": " << quoted(summary.no_device) << ",\n";
  } else {
    out << "  \"device\": " << quoted(summary.device) << ",\n  \"checks\": " << json_list(summary.found, json_case)
        << ",\n  \"matrix\": " << json_list(summary.session->matrix, json_row)
        << ",\n  \"missing_of_tier0\": " << json_list(summary.missing_of_tier0, quoted) << ",\n";
  }
  out << "  \"cases\": " << summary.cases() << ",\n  \"failures\": " << summary.failures() << "\n}\n";
}

}  // namespace plugrad::conformance
