// Profilers and memory snapshots: the classes that python/plugrad/profiler.py wraps or returns.
#include <plugrad/autograd/memory.hpp>
#include <plugrad/runtime/profiler.hpp>
#include <python/binding.hpp>
#include <python/held.hpp>

#include <array>

namespace plugrad::python {
namespace {

constexpr std::array<const char*, 7> kKinds{"op", "copy", "allocation", "wait", "range", "gradient", "exchange"};
template <class T> const char* kind_of(const T& x) { return kKinds[static_cast<size_t>(x.kind)]; }
template <class T> const char* how_of(const T& x) { return how_name(x.how); }
template <class Extents> nb::tuple tuple_of_extents(const Extents& extents) {
  return nb::tuple(nb::cast(std::vector<int64_t>(extents.begin(), extents.end())));
}

TableOptions table_options(const std::string& sort, size_t rows, bool shapes) {
  constexpr std::array<const char*, 4> kSorts{"time", "bytes", "calls", "fallbacks"};
  for (size_t i = 0; i < kSorts.size(); ++i)
    if (sort == kSorts[i]) return {static_cast<ProfileSort>(i), rows, shapes};
  throw Error(Code::invalid, "[profiler] sort is '" + sort + "': 'time', 'bytes', 'calls' or 'fallbacks' expected");
}

std::string device_name(const ProfileEvent& event) { return event.device.defined() ? event.device.name() : ""; }

void bind_events(nb::module_& m) {
  nb::class_<ProfileOperand>(m, "ProfileOperand", "An operand of an op that a profiler recorded.")
      .def_prop_ro("shape", [](const ProfileOperand& x) { return tuple_of_extents(x.shape()); })
      .def_prop_ro(
          "dtype", [](const ProfileOperand& x) { return x.dtype; }, "The name of the dtype: 'f32'.")
      .def_ro("output", &ProfileOperand::output, "True if the op writes the operand.")
      .def_ro("number", &ProfileOperand::number, "True if the operand is a number and not a tensor.");
  nb::class_<ProfileEvent>(m, "ProfileEvent",
                           "An op, a copy or another event on a thread while a profiler recorded. Times "
                           "are in nanoseconds.")
      .def_prop_ro("kind", &kind_of<ProfileEvent>, "'op', 'copy', 'allocation', 'wait', 'range', 'gradient' or 'exchange'.")
      .def_prop_ro("how", &how_of<ProfileEvent>, "'native', 'dense copies', 'wider dtype', 'decomposed', 'host' or 'parts'.")
      .def_ro("failed", &ProfileEvent::failed, "True if the event ended by an exception.")
      .def_ro("complete", &ProfileEvent::complete, "True if the time includes the device's work.")
      .def_ro("thread", &ProfileEvent::thread)
      .def_ro("depth", &ProfileEvent::depth, "The number of events around it.")
      .def_ro("name", &ProfileEvent::name)
      .def_ro("gradient", &ProfileEvent::gradient,
              "The op whose gradient needed this event; empty outside of backward passes.")
      .def_prop_ro("device", device_name, "The name of the device; empty for ranges and gradients.")
      .def_ro("begin", &ProfileEvent::begin, "The start time, counted from the profiler's construction.")
      .def_ro("duration", &ProfileEvent::duration, "The time with the events inside.")
      .def_ro("self", &ProfileEvent::self, "The time without the events inside.")
      .def_ro("bytes", &ProfileEvent::bytes, "Bytes read and written; for a copy or an allocation, its size.")
      .def_ro("live", &ProfileEvent::live, "Bytes of the device in use at the end.")
      .def_ro("peak", &ProfileEvent::peak,
              "The maximum of bytes in use since the device's last event; for a range, the maximum inside.")
      .def_prop_ro(
          "operands", [](const ProfileEvent& x) { return x.operands; }, "The operands, with outputs first.")
      .def("__repr__", [](const ProfileEvent& x) {
        return "ProfileEvent(" + x.name + ", " + kind_of(x) + ", " + std::to_string(x.duration) + " ns)";
      });
}

void bind_rows(nb::module_& m) {
  nb::class_<ProfileRow>(m, "ProfileRow", "The sum of similar events. Times are in nanoseconds.")
      .def_prop_ro("kind", &kind_of<ProfileRow>)
      .def_prop_ro("how", &how_of<ProfileRow>)
      .def_ro("backward", &ProfileRow::backward, "True if the events ran in backward passes.")
      .def_ro("name", &ProfileRow::name)
      .def_ro("device", &ProfileRow::device)
      .def_ro("shapes", &ProfileRow::shapes)
      .def_ro("calls", &ProfileRow::calls)
      .def_ro("fallbacks", &ProfileRow::fallbacks, "Calls that did not run natively.")
      .def_ro("time", &ProfileRow::time)
      .def_ro("self", &ProfileRow::self)
      .def_ro("bytes", &ProfileRow::bytes)
      .def_ro("peak", &ProfileRow::peak)
      .def("__repr__", [](const ProfileRow& x) {
        return "ProfileRow(" + x.name + ", " + how_of(x) + ", calls=" + std::to_string(x.calls) + ", " +
               std::to_string(x.time) + " ns)";
      });
}

void make_profiler(Profiler* self, const nb::object& trace, bool synchronize, int64_t limit) {
  if (limit < 0)
    throw Error(Code::invalid, "[profiler] limit is " + std::to_string(limit) + ": choose how many events to keep");
  new (self) Profiler({.trace = trace.is_none() ? std::string() : path_of(trace),
                       .synchronize = synchronize,
                       .limit = static_cast<uint64_t>(limit)});
}

void bind_profiler(nb::module_& m) {
  nb::class_<Profiler>(m, "_Profiler")
      .def("__init__", make_profiler, nb::arg("trace").none(), nb::arg("synchronize"), nb::arg("limit"))
      .def("stop", [](Profiler& p) { unlocked([&p] { p.stop(); }); })
      .def("events", &Profiler::events)
      .def("dropped", &Profiler::dropped)
      .def("rows", [](const Profiler& p, const std::string& sort, size_t rows,
                      bool shapes) { return p.rows(table_options(sort, rows, shapes)); })
      .def("table", [](const Profiler& p, const std::string& sort, size_t rows,
                       bool shapes) { return p.table(table_options(sort, rows, shapes)); })
      .def("save", [](const Profiler& p, const nb::object& path) { p.save(path_of(path)); });
  nb::class_<ProfileRange>(m, "_ProfileRange").def(nb::init<const std::string&>());
}

MemorySnapshot snapshot(const DeviceLike& device, const nb::list& named) {
  std::vector<std::pair<std::string, Tensor>> names;
  for (const nb::handle each : named) {
    const nb::tuple pair = nb::cast<nb::tuple>(each);
    names.emplace_back(nb::cast<std::string>(pair[0]), tensor_in(pair[1].ptr()));
  }
  return memory_snapshot(device.get(), names);
}

void record(bool on, const nb::object& where) {
  if (!on || where.is_none()) return record_memory(on);
  record_memory(true, [held = Held(where)] {
    const nb::gil_scoped_acquire locked;
    return nb::cast<std::string>(held.get()());
  });
}

void bind_snapshots(nb::module_& m) {
  nb::class_<MemoryEntry>(m, "MemoryEntry", "A piece of memory in use.")
      .def_prop_ro(
          "kind", [](const MemoryEntry& x) { return memory_kind_name(x.kind); },
          "'parameter', 'gradient', 'saved', 'other' or 'unrecorded'.")
      .def_ro("bytes", &MemoryEntry::bytes)
      .def_ro("name", &MemoryEntry::name, "'0.weight', or '0.weight.grad' for its gradient.")
      .def_ro("saved_by", &MemoryEntry::saved_by, "The ops that keep the memory for their gradients.")
      .def_ro("op", &MemoryEntry::op, "The first op that wrote to the memory; empty if ops only read or updated it.")
      .def_ro("gradient", &MemoryEntry::gradient, "The op whose gradient needed the memory.")
      .def_ro("range", &MemoryEntry::range, "The innermost range around that op.")
      .def_ro("where", &MemoryEntry::where, "The line of the program that called the op.")
      .def_ro("dtype", &MemoryEntry::dtype)
      .def_prop_ro("shape", [](const MemoryEntry& x) { return tuple_of_extents(x.shape); })
      .def("__repr__", [](const MemoryEntry& x) {
        return std::string("MemoryEntry(") + memory_kind_name(x.kind) + ", " + std::to_string(x.bytes) + " bytes)";
      });
  nb::class_<MemorySnapshot>(m, "MemorySnapshot", "The owners of a device's memory.")
      .def_ro("device", &MemorySnapshot::device)
      .def_ro("total", &MemorySnapshot::total, "The sum of the entries, equal to memory_stats().active.")
      .def_prop_ro(
          "entries", [](const MemorySnapshot& x) { return x.entries; }, "The entries, with the largest first.")
      .def("table", &MemorySnapshot::table, nb::arg("rows") = 20,
           "Returns the sums of each kind and then `rows` entries, with equal entries on one line, as aligned text.");
  m.def("_memory_snapshot", snapshot);
  m.def("_record_memory", record, nb::arg("on"), nb::arg("where").none());
  m.def("_records_memory", records_memory);
}
}  // namespace

void bind_profilers(nb::module_& m) {
  bind_events(m);
  bind_rows(m);
  bind_profiler(m);
  bind_snapshots(m);
}

}  // namespace plugrad::python
