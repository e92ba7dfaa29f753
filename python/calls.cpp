// What all functions of the module do alike: they take NumPy's names of parameters, and say briefly which arguments do not
// fit. What returns values and indices returns values alone where the axis has NumPy's name. nanobind lists every overload
// with the names of C++ types. Its function objects are run by a few functions of the type vectorcallfunc; each object is
// made to run `polished` instead, which calls the former.
#include <python/binding.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace plugrad::python {
namespace {

constexpr size_t kRunners = 8;
std::array<vectorcallfunc, kRunners> runners{};  // under the GIL, while the module is imported

bool is_name(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

std::vector<PyObject*> with_own_axis;  // functions that distinguish axis from dim themselves

// Parameters that may be None in PyTorch, where the core leaves them out.
constexpr std::array kMayBeNone = {"dim", "axis", "correction", "spacing", "generator", "out"};

// Names by which calls may give a parameter as well, of each function. Written while the module is imported.
struct OtherName {
  const char *theirs, *ours;
};
std::unordered_map<PyObject*, std::vector<OtherName>> other_names;
std::vector<const char*> all_other_names;

template <class Names> bool is_among(PyObject* name, const Names& names) {
  return std::ranges::any_of(names, [name](const char* each) { return is_name(name, each); });
}

const char* our_name(PyObject* function, PyObject* name) {
  if (is_name(name, "axis")) return "dim";
  if (is_name(name, "keepdims")) return "keepdim";
  const auto found = other_names.find(function);
  if (found == other_names.end()) return nullptr;
  for (const OtherName& each : found->second)
    if (is_name(name, each.theirs)) return each.ours;
  return nullptr;
}

// Arguments by name, with "axis" and "keepdims" as "dim" and "keepdim". A dim that is None is left out: it means all.
struct Renamed {
  Renamed(PyObject* function, PyObject* const* given, size_t positional, PyObject* given_names, bool keeps_axis)
      : arguments(given, given + positional) {
    nb::list kept;
    for (Py_ssize_t i = 0; i < list_size(given_names); ++i) {
      PyObject* const name = list_item(given_names, i);
      PyObject* const value = given[positional + static_cast<size_t>(i)];
      has_axis |= is_name(name, "axis");
      const char* const ours = keeps_axis && is_name(name, "axis") ? nullptr : our_name(function, name);
      nb::object called = ours ? nb::object(nb::str(ours)) : nb::borrow(name);
      if (PySequence_Contains(kept.ptr(), called.ptr()) == 1)
        throw nb::type_error(
            ("[call] '" + std::string(nb::str(called).c_str()) + "' is given twice, by two of its names").c_str());
      if (value == Py_None && is_among(called.ptr(), kMayBeNone)) continue;
      if (is_name(called.ptr(), "generator")) {
        generator = value;
        continue;
      }
      kept.append(called);
      arguments.push_back(value);
    }
    names = nb::tuple(kept);
  }
  bool has_axis = false;
  PyObject* generator = nullptr;     // borrowed
  std::vector<PyObject*> arguments;  // borrowed
  nb::tuple names;
};

// Functions that draw random numbers and so take a Generator.
constexpr std::array kDrawing = {"rand",        "randn",         "randint",        "randperm",     "rand_like",
                                 "randn_like",  "randint_like",  "bernoulli",      "multinomial",  "normal",
                                 "exponential", "normal_",       "uniform_",       "bernoulli_",   "exponential_",
                                 "random_",     "trunc_normal_", "_init_uniform_", "_init_normal_"};

// Puts the device's generator into the state of a Generator, and takes the state back at the end.
class Drawing {
 public:
  Drawing(PyObject* function, nb::handle generator) {
    const std::string name = nb::cast<std::string>(nb::handle(function).attr("__name__"));
    if (std::ranges::none_of(kDrawing, [&](const char* each) { return name == each; }) || !nb::hasattr(generator, "_begin"))
      throw nb::type_error(("[" + name +
                            "] generator must be None or a plugrad.Generator, and the function one that draws "
                            "random numbers")
                               .c_str());
    generator.attr("_begin")();
    generator_ = nb::borrow(generator);
  }
  ~Drawing() {
    try {
      generator_.attr("_end")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a generator's state");
    }
  }

 private:
  nb::object generator_;
};

bool has_other_names(PyObject* names) {
  for (Py_ssize_t i = 0; i < list_size(names); ++i)
    if (PyObject* const name = list_item(names, i);
        is_name(name, "axis") || is_name(name, "keepdims") || is_among(name, kMayBeNone) || is_among(name, all_other_names))
      return true;
  return false;
}

// Replaces the error of nanobind by one that plugrad._messages makes of its text.
void shorten_error() noexcept {
  guarded(0, [] {
    nb::python_error error;
    const nb::object shorter = nb::module_::import_("plugrad._messages").attr("shorter")(nb::str(error.value()));
    if (shorter.is_none()) error.restore();
    else PyErr_SetObject(PyExc_TypeError, shorter.ptr());
    return 0;
  });
}

template <size_t kRunner>
PyObject* polished(PyObject* function, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  PyObject* result = nullptr;
  if (names && has_other_names(names)) {
    result = guarded<PyObject*>(nullptr, [=] {
      const size_t positional = static_cast<size_t>(PyVectorcall_NARGS(count));
      const Renamed renamed(function, arguments, positional, names, std::ranges::count(with_own_axis, function) > 0);
      PyObject* const left = nb::len(renamed.names) ? renamed.names.ptr() : nullptr;
      std::optional<Drawing> drawing;
      if (renamed.generator) drawing.emplace(function, renamed.generator);
      PyObject* const whole = runners[kRunner](function, renamed.arguments.data(), positional, left);
      return renamed.has_axis && whole ? values_alone(whole) : whole;
    });
  } else {
    result = runners[kRunner](function, arguments, count, names);
  }
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) [[unlikely]]
    shorten_error();
  return result;
}

template <size_t... kIndex> constexpr auto all_polished(std::index_sequence<kIndex...>) {
  return std::array<vectorcallfunc, kRunners>{polished<kIndex>...};
}
constexpr auto kPolished = all_polished(std::make_index_sequence<kRunners>());

// Whether this is code of the module, which contains nanobind.
bool is_our_code(vectorcallfunc function) {
  Dl_info found{}, own{};
  return dladdr(reinterpret_cast<void*>(function), &found) && dladdr(reinterpret_cast<void*>(&is_our_code), &own) &&
         found.dli_fbase == own.dli_fbase;
}

// Where a function object of nanobind keeps the function that runs it: after the head of an object of variable size, by
// nb_internals.h; the stable ABI does not tell. Null for other objects.
vectorcallfunc* runner_of(PyObject* function) {
  const std::string type = type_name_of(function);
  if (type != "nb_func" && type != "nb_method") return nullptr;
  auto* const runner = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<PyVarObject*>(function) + 1);
  return is_our_code(*runner) ? runner : nullptr;
}

void polish(PyObject* name, PyObject* function) {
  if (Py_TYPE(function) == &PyProperty_Type) return polish(name, nb::handle(function).attr("fset").ptr());
  vectorcallfunc* const runner = runner_of(function);
  if (!runner) return;
  if (is_name(name, "max") || is_name(name, "min")) with_own_axis.push_back(function);
  if (std::ranges::count(kPolished, *runner)) return;
  for (size_t i = 0; i < kRunners; ++i) {
    if (!runners[i]) runners[i] = *runner;
    if (runners[i] != *runner) continue;
    *runner = kPolished[i];
    return;
  }
}

void polish_all(nb::handle dictionary) {
  for (const nb::handle each : nb::list(dictionary.attr("items")())) polish(each[0].ptr(), each[1].ptr());
}
}  // namespace

void also_named(nb::handle function, const char* theirs, const char* ours) {
  other_names[function.ptr()].push_back({theirs, ours});
  if (std::ranges::none_of(all_other_names, [&](const char* each) { return std::string_view(each) == theirs; }))
    all_other_names.push_back(theirs);
}

void polish_calls(nb::module_& m) {
  const nb::dict members = nb::borrow<nb::dict>(m.attr("__dict__"));
  polish_all(members);
  for (const auto& [name, member] : members)
    if (PyType_Check(member.ptr())) polish_all(member.attr("__dict__"));
}

}  // namespace plugrad::python
