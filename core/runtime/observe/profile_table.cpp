// Sums of similar events, and their text.
#include <core/runtime/memory/aligned.hpp>
#include <core/runtime/observe/profiling.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace plugrad {

const char* how_name(How how) {
  static constexpr std::array<const char*, 6> kNames{"native", "dense copies", "wider dtype", "decomposed", "host", "parts"};
  return kNames[static_cast<size_t>(how)];
}

namespace profiling {
namespace {
bool is_work(EventKind kind) { return kind != EventKind::range && kind != EventKind::gradient; }

std::string shape_text(const ProfileOperand& operand) {
  if (operand.number) return operand.dtype;
  std::string text = "(";
  for (const int64_t extent : operand.shape()) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + (operand.rank == 1 ? ",) " : ") ") + operand.dtype;
}

void add(ProfileRow& row, const ProfileEvent& event) {
  ++row.calls;
  row.fallbacks += event.how != How::native;
  row.time += event.duration;
  row.self += event.self;
  row.bytes += event.bytes;
  row.peak = std::max(row.peak, event.peak);
}

ProfileRow row_for(const ProfileEvent& event, bool shapes) {
  ProfileRow row;
  row.kind = event.kind;
  row.how = event.how;
  row.backward = !event.gradient.empty();
  row.name = event.name;
  if (event.device.defined()) row.device = event.device.name();
  if (shapes) row.shapes = shapes_text(event);
  return row;
}

// The sort key of a table.
int64_t weight(const ProfileRow& row, ProfileSort sort) {
  switch (sort) {
    case ProfileSort::bytes: return static_cast<int64_t>(row.bytes);
    case ProfileSort::calls: return static_cast<int64_t>(row.calls);
    case ProfileSort::fallbacks: return static_cast<int64_t>(row.fallbacks);
    default: return row.kind == EventKind::range ? row.time : row.self;
  }
}

std::vector<ProfileRow> sorted(std::vector<ProfileRow> rows, const TableOptions& options) {
  std::ranges::stable_sort(rows, [&](const ProfileRow& a, const ProfileRow& b) {
    return std::tuple(weight(a, options.sort), a.self) > std::tuple(weight(b, options.sort), b.self);
  });
  rows.resize(std::min(rows.size(), options.rows));
  return rows;
}

// Bytes per second, or "" without bytes or time.
std::string rate_text(const ProfileRow& row) {
  if (!row.bytes || row.time <= 0) return "";
  return bytes_text(static_cast<double>(row.bytes) / static_cast<double>(row.time) * 1e9) + "/s";
}

TextRow text_of(const ProfileRow& row, int64_t whole, bool shapes) {
  const double time = static_cast<double>(row.time), self = static_cast<double>(row.self);
  const bool is_op = row.kind == EventKind::op;
  TextRow text{row.name + (row.backward ? " (backward)" : ""), row.device, is_op ? how_name(row.how) : ""};
  if (shapes) text.push_back(row.shapes);
  const TextRow numbers{std::to_string(row.calls),
                        time_text(self),
                        percent_text(self, static_cast<double>(whole)),
                        time_text(time),
                        time_text(time / static_cast<double>(row.calls)),
                        bytes_text(static_cast<double>(row.bytes)),
                        rate_text(row),
                        std::to_string(row.fallbacks)};
  text.insert(text.end(), numbers.begin(), numbers.end());
  return text;
}

std::string work_text(const std::vector<ProfileRow>& rows, int64_t whole, bool shapes) {
  TextRow header{"name", "device", "how"};
  if (shapes) header.emplace_back("shapes");
  const size_t left = header.size();
  header.insert(header.end(), {"calls", "self", "share", "total", "mean", "bytes", "rate", "fallbacks"});
  std::vector<TextRow> lines{std::move(header)};
  for (const ProfileRow& row : rows)
    if (is_work(row.kind)) lines.push_back(text_of(row, whole, shapes));
  return aligned(lines, left);
}

std::string ranges_text(const std::vector<ProfileRow>& rows) {
  std::vector<TextRow> lines{{"range", "calls", "total", "mean", "peak"}};
  for (const ProfileRow& row : rows) {
    if (row.kind != EventKind::range) continue;
    const double time = static_cast<double>(row.time);
    lines.push_back({row.name, std::to_string(row.calls), time_text(time), time_text(time / static_cast<double>(row.calls)),
                     bytes_text(static_cast<double>(row.peak))});
  }
  return lines.size() > 1 ? "\n" + aligned(lines, 1) : "";
}

struct Totals {
  uint64_t ops = 0, fallbacks = 0, incomplete = 0;
  int64_t time = 0;
};
Totals totals_of(const std::vector<ProfileEvent>& events) {
  Totals all;
  for (const ProfileEvent& each : events) {
    if (!is_work(each.kind)) continue;
    all.ops += each.kind == EventKind::op;
    all.fallbacks += each.how != How::native;
    all.incomplete += !each.complete;
    all.time += each.self;
  }
  return all;
}
}  // namespace

std::string shapes_text(const ProfileEvent& event) {
  std::string outputs, inputs;
  for (const ProfileOperand& each : event.operands) {
    std::string& list = each.output ? outputs : inputs;
    list += (list.empty() ? "" : ", ") + shape_text(each);
  }
  return outputs.empty() && inputs.empty() ? "" : outputs + " <- " + inputs;
}

std::vector<ProfileRow> rows_of(const std::vector<ProfileEvent>& events, const TableOptions& options) {
  std::map<std::tuple<EventKind, std::string, std::string, How, bool, std::string>, ProfileRow> groups;
  for (const ProfileEvent& each : events) {
    if (each.kind == EventKind::gradient) continue;
    ProfileRow row = row_for(each, options.shapes);
    const auto key = std::tuple(row.kind, row.name, row.device, row.how, row.backward, row.shapes);
    add(groups.try_emplace(key, std::move(row)).first->second, each);
  }
  std::vector<ProfileRow> work, ranges;
  for (auto& [key, row] : groups) (is_work(row.kind) ? work : ranges).push_back(std::move(row));
  std::vector<ProfileRow> all = sorted(std::move(work), options);
  for (ProfileRow& each : sorted(std::move(ranges), options)) all.push_back(std::move(each));
  return all;
}

std::string table_of(const std::vector<ProfileEvent>& events, uint64_t dropped, const TableOptions& options) {
  const Totals totals = totals_of(events);
  const std::vector<ProfileRow> rows = rows_of(events, options);
  std::string text = work_text(rows, totals.time, options.shapes) + ranges_text(rows);
  text += "\n" + time_text(static_cast<double>(totals.time)) + " in " + std::to_string(totals.ops) + " ops, " +
          std::to_string(totals.fallbacks) + " of them fallbacks\n";
  if (totals.incomplete)
    text += std::to_string(totals.incomplete) + " events have the time of the call on the host, without the device's work\n";
  if (dropped) text += std::to_string(dropped) + " events were dropped: raise the profiler's limit\n";
  return text;
}

}  // namespace profiling
}  // namespace plugrad
