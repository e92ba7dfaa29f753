#include <sdk/conformance/summary.hpp>

#include <sdk/conformance/grade.hpp>

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
  const Result& result = found.result;
  return "\n    {\"name\": " + quoted(found.name) + ", \"cases\": " + std::to_string(result.cases) +
         ", \"failures\": " + std::to_string(result.failures) + ", \"expected\": " + (found.expected ? "true" : "false") +
         ", \"declined\": " + std::to_string(result.declined) + ", \"seconds\": " + std::to_string(result.seconds) +
         ", \"lines\": " + json_list(result.lines, quoted) + ", \"skipped\": " + json_list(result.skips, quoted) + "}";
}

void write_case(std::ostream& out, const Found& found) {
  const Result& result = found.result;
  const bool silent = found.name.starts_with("op.") && !result.cases && !result.failures;
  if (silent) return;
  out << std::left << std::setw(28) << found.name << std::right << std::setw(8) << result.cases << " cases  ";
  out << (found.expected ? "fails as expected" : result.failures ? "FAIL" : result.cases ? "ok" : "skipped");
  if (result.declined) out << ", " << result.declined << " declined at run";
  for (const std::string& reason : result.skips) out << ": " << reason;
  out << "\n";
}

void write_failures(std::ostream& out, const Summary& summary) {
  for (const Found& found : summary.found) {
    if (found.expected || !found.result.failures) continue;
    for (const std::string& line : found.result.lines) out << "FAIL " << found.name << ": " << line << "\n";
    const uint64_t said = found.result.lines.size();  // a failure may have several lines
    if (const uint64_t more = found.result.failures - std::min(said, found.result.failures))
      out << "FAIL " << found.name << ": and " << more << " more (see --verbose)\n";
    if (found.name.starts_with("train.")) out << "  again: " << summary.trial << "\n";
    else if (found.name != "replay" && !found.name.starts_with("process."))
      out << "  again: " << summary.command << " --only " << found.name << "\n";
  }
}

std::string xml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') escaped += "&amp;";
    else if (c == '<') escaped += "&lt;";
    else if (c == '>') escaped += "&gt;";
    else if (c == '"') escaped += "&quot;";
    else escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? '?' : c;
  }
  return escaped;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\') json += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) >= 0x20) json += c;
    else {
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    }
  }
  return json + "\"";
}

uint64_t Summary::cases() const {
  uint64_t sum = 0;
  for (const Found& one : found) sum += one.result.cases;
  return sum;
}

uint64_t Summary::failures() const {
  uint64_t sum = 0;
  for (const Found& one : found) sum += one.expected ? 0 : one.result.failures;
  return sum;
}

void write_text(std::ostream& out, const Summary& summary) {
  out << summary.plugin << ": backend '" << summary.backend << "' " << summary.version << "\n";
  if (summary.device.empty()) {
    out << "loads, but has no device: " << summary.no_device << "\n";
    return;
  }
  out << "device: " << summary.device << "\n\n";
  for (const Found& found : summary.found) write_case(out, found);
  write_matrix(out, summary.matrix);
  if (summary.whole) {
    const std::vector<std::string>& missing = summary.missing_of_tier0;
    out << "tier 0: " << (missing.empty() ? "complete" : std::to_string(missing.size()) + " missing:") << "\n";
    for (const std::string& question : missing) out << "  " << question << "\n";
  }
  if (summary.highest >= 0) out << text_of(grade_of(summary, summary.highest));
  for (const std::string& name : summary.not_begun) out << "not begun within the time of --budget: " << name << "\n";
  write_failures(out, summary);
  out << "\n" << summary.cases() << " cases, " << summary.failures() << " failures\n";
}

void write_json(std::ostream& out, const Summary& summary) {
  out << "{\n  \"plugin\": " << quoted(summary.plugin) << ",\n  \"backend\": " << quoted(summary.backend)
      << ",\n  \"version\": " << quoted(summary.version) << ",\n";
  if (summary.device.empty()) {
    out << "  \"device\": null,\n  \"reason\": " << quoted(summary.no_device) << ",\n";
  } else {
    out << "  \"device\": " << quoted(summary.device) << ",\n  \"checks\": " << json_list(summary.found, json_case)
        << ",\n  \"matrix\": " << json_list(summary.matrix, json_row)
        << ",\n  \"missing_of_tier0\": " << json_list(summary.missing_of_tier0, quoted) << ",\n";
    if (summary.highest >= 0) {
      const Grade grade = grade_of(summary, summary.highest);
      out << "  \"level\": " << grade.level << ",\n  \"next\": " << quoted(grade.next)
          << ",\n  \"tier1\": {\"ops\": " << grade.tier1 << ", \"of\": " << grade.tier1_ops << "},\n";
    }
  }
  out << "  \"not_begun\": " << json_list(summary.not_begun, quoted) << ",\n  \"cases\": " << summary.cases()
      << ",\n  \"failures\": " << summary.failures() << "\n}\n";
}

void write_junit(std::ostream& out, const Summary& summary) {
  const auto failed = std::ranges::count_if(summary.found, [](const Found& f) { return f.result.failures && !f.expected; });
  double seconds = 0;
  for (const Found& found : summary.found) seconds += found.result.seconds;
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"plugrad-conform " << xml(summary.backend)
      << "\" tests=\"" << summary.found.size() << "\" failures=\"" << failed << "\" time=\"" << seconds << "\">\n";
  for (const Found& found : summary.found) {
    const Result& result = found.result;
    out << "  <testcase classname=\"" << xml(summary.backend) << "\" name=\"" << xml(found.name) << "\" time=\""
        << result.seconds << "\">";
    if (result.failures && !found.expected) {
      out << "<failure message=\"" << result.failures << " failures\">";
      for (const std::string& line : result.lines) out << xml(line) << "\n";
      out << "</failure>";
    } else if (found.expected || !result.cases) {
      out << "<skipped message=\""
          << (found.expected ? "fails as expected" : xml(result.skips.empty() ? "not claimed" : result.skips[0])) << "\"/>";
    }
    out << "</testcase>\n";
  }
  out << "</testsuite>\n";
}

}  // namespace plugrad::conformance
