// Chrome's trace event format; Perfetto reads it, too. Each device is a process of the trace, and so is the host for events
// without a device. The trace numbers threads as the events do.
#include <core/runtime/observe/profiling.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string_view>

namespace plugrad::profiling {
namespace {
constexpr uint32_t kHost = 1;  // as a process

// The bytes of the UTF-8 character at the beginning of a text, or 0 if the text begins with invalid bytes.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) >> 5 == 6 ? 2 : byte(0) >> 4 == 14 ? 3 : byte(0) >> 3 == 30 ? 4 : 0;
  if (!length || length > text.size()) return 0;
  uint32_t code = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // a smaller code must be written in fewer bytes
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kFirst[length] || code > 0x10ffff || surrogate ? 0 : length;
}

// A JSON string. Invalid bytes of UTF-8 become question marks.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = character(text.substr(i));
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
    if (c < 0x20) out += escaped;
    else if (c == '"' || c == '\\') (out += '\\') += text[i];
    else out += length ? text.substr(i, length) : "?";
    i += std::max<size_t>(length, 1);
  }
  return out + "\"";
}

// Microseconds with three decimals.
std::string microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

uint32_t process_of(const ProfileEvent& event) {
  return event.device.defined() ? kHost + 1 + event.device.state().ordinal : kHost;
}

const char* category(const ProfileEvent& event) {
  switch (event.kind) {
    case EventKind::op: return event.gradient.empty() ? "forward" : "backward";
    case EventKind::copy: return "copy";
    case EventKind::allocation: return "allocation";
    case EventKind::wait: return "wait";
    case EventKind::range: return "range";
    case EventKind::exchange: return "exchange";
    default: return "gradient";
  }
}

std::string operands_text(const ProfileEvent& event, bool outputs) {
  std::string text = "[";
  for (const ProfileOperand& each : event.operands) {
    if (each.output != outputs) continue;
    text += (text.size() > 1 ? "," : "") + std::string("{\"dtype\":\"") + each.dtype + "\"";
    if (each.number) {
      text += ",\"number\":true}";
      continue;
    }
    std::string extents;
    for (const int64_t extent : each.shape()) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    text += ",\"shape\":[" + extents + "]}";
  }
  return text + "]";
}

std::string arguments(const ProfileEvent& event) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += (text.empty() ? "\"" : ",\"") + std::string(name) + "\":" + value;
  };
  if (event.kind == EventKind::op) add("how", json_text(how_name(event.how)));
  if (!event.gradient.empty()) add("gradient of", json_text(event.gradient));
  if (event.bytes) add("bytes", std::to_string(event.bytes));
  if (!event.operands.empty()) {
    add("outputs", operands_text(event, true));
    add("inputs", operands_text(event, false));
  }
  if (event.kind == EventKind::range && event.peak) add("peak bytes", std::to_string(event.peak));
  if (event.kind == EventKind::op || event.kind == EventKind::copy)
    add("time of", event.complete ? "\"the device's work\"" : "\"the call on the host\"");
  if (event.failed) add("failed", "true");
  return "{" + text + "}";
}

// The fields of all events but metadata.
std::string place(const ProfileEvent& event, int64_t at, const char* phase) {
  return std::string("\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(process_of(event)) +
         ",\"tid\":" + std::to_string(event.thread) + ",\"ts\":" + microseconds(at);
}

std::string name_of(const ProfileEvent& event) {
  const bool of_node = event.kind == EventKind::gradient && !event.gradient.empty();
  return of_node ? "gradient of " + event.name : event.name;
}

// A decomposed op takes no time: it is an instant of its thread.
std::string line_of(const ProfileEvent& event) {
  const bool instant = event.how == How::decomposed;
  return "{\"name\":" + json_text(name_of(event)) + ",\"cat\":\"" + category(event) + "\"," +
         place(event, event.begin, instant ? "i" : "X") +
         (instant ? ",\"s\":\"t\"" : ",\"dur\":" + microseconds(event.duration)) + ",\"args\":" + arguments(event) + "}";
}

std::string metadata(const char* what, uint32_t process, uint32_t thread, const std::string& name) {
  return std::string("{\"name\":\"") + what + "\",\"ph\":\"M\",\"pid\":" + std::to_string(process) +
         ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":" + json_text(name) + "}}";
}

void write_names(std::ostream& out, const std::vector<ProfileEvent>& events) {
  out << metadata("process_name", kHost, 0, "host");
  std::set<uint32_t> processes{kHost};
  std::set<std::pair<uint32_t, uint32_t>> threads;
  for (const ProfileEvent& each : events) {
    const uint32_t process = process_of(each);
    if (processes.insert(process).second) out << ",\n" << metadata("process_name", process, 0, each.device.name());
    if (threads.emplace(process, each.thread).second)
      out << ",\n" << metadata("thread_name", process, each.thread, "thread " + std::to_string(each.thread));
  }
}

// Values of counters, in the order of time: threads share a device.
void write_counters(std::ostream& out, const std::vector<ProfileEvent>& events) {
  std::vector<const ProfileEvent*> samples;
  for (const ProfileEvent& each : events)
    if (each.live) samples.push_back(&each);
  const auto end_of = [](const ProfileEvent* each) { return each->begin + each->duration; };
  std::ranges::stable_sort(samples, {}, end_of);
  for (const ProfileEvent* each : samples)
    out << ",\n{\"name\":\"memory in use\"," << place(*each, end_of(each), "C") << ",\"args\":{\"bytes\":" << each->live
        << "}}";
}
}  // namespace

void write_trace(const std::string& path, const std::vector<ProfileEvent>& events, uint64_t dropped) {
  std::ofstream out(path, std::ios::trunc);
  out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":\"plugrad\",\"dropped events\":" << dropped
      << "},\"traceEvents\":[\n";
  write_names(out, events);
  for (const ProfileEvent& each : events) out << ",\n" << line_of(each);
  write_counters(out, events);
  out << "\n]}\n";
  out.close();
  if (!out) throw Error(Code::io_error, "[profiler] " + path + " cannot be written: check the path and the free space");
}

}  // namespace plugrad::profiling
