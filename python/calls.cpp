// The functions of the module as the package shows them. nanobind converts arguments and chooses the overload. A Function
// wraps each nanobind function: it accepts NumPy's and PyTorch's names of parameters, and if no overload fits, it replaces
// nanobind's list of all overloads by a short sentence.
#include <python/binding.hpp>
#include <python/calls.hpp>

#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>

namespace plugrad::python {
// A parameter that fits only when nanobind permits conversions: after all overloads have refused the unconverted arguments.
struct AfterAll {};
}  // namespace plugrad::python

namespace nanobind::detail {
template <> struct type_caster<plugrad::python::AfterAll> {
  NB_TYPE_CASTER(plugrad::python::AfterAll, const_name("None"))
  bool from_python(handle, uint32_t flags, cleanup_list*) noexcept { return flags & cast_flags::convert; }
};
}  // namespace nanobind::detail

namespace plugrad::python {
namespace {

struct Function {
  PyObject head;
  vectorcallfunc vectorcall;
  PyObject* inner;          // nanobind's function
  vectorcallfunc run;       // calls it
  PyObject* name;           // for messages: the name of the property if the function is a setter
  PyObject* further_names;  // a dict from the further name of a parameter to the parameter's name
  PyObject* weak_references;
  bool draws;       // whether it draws random numbers and takes a Generator as `generator`
  bool dispatches;  // whether calls with a tensor of a derived class go to the dispatcher
};
Function& function_of(PyObject* self) { return *reinterpret_cast<Function*>(self); }

bool is_name(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

template <class Names> bool is_among(PyObject* name, const Names& names) {
  return std::ranges::any_of(names, [name](const char* each) { return is_name(name, each); });
}

// Parameters that may be None in PyTorch. The call leaves such a None out.
constexpr std::array kMayBeNone = {"dim", "axis", "correction", "spacing", "generator", "out"};

// --- Calls.

nb::object given_positionally(PyObject* const* arguments, size_t count) {
  nb::list all;
  for (size_t i = 0; i < count; ++i) all.append(nb::handle(arguments[i]));
  return nb::tuple(all);
}

nb::dict given_by_name(PyObject* const* values, PyObject* names) {
  nb::dict named;
  for (Py_ssize_t i = 0; names && i < list_size(names); ++i) named[nb::handle(list_item(names, i))] = nb::handle(values[i]);
  return named;
}

// Replaces nanobind's error that no overload fits by the sentence of plugrad._messages. Keeps all other errors.
void explain(const Function& function, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  guarded(0, [&] {
    nb::python_error error;
    const nb::object sentence =
        nb::module_::import_("plugrad._messages")
            .attr("explained")(nb::handle(function.inner), nb::handle(function.name), nb::str(error.value()),
                               given_positionally(arguments, count), given_by_name(arguments + count, names));
    if (sentence.is_none()) error.restore();
    else PyErr_SetObject(PyExc_TypeError, sentence.ptr());
    return 0;
  });
}

PyObject* dispatched(PyObject* self, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  return guarded<PyObject*>(nullptr, [&] {
    const nb::object positional = given_positionally(arguments, count);
    return nb::handle(dispatcher)(nb::handle(self), positional, given_by_name(arguments + count, names)).release().ptr();
  });
}

PyObject* run(const Function& function, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  PyObject* const result = function.run(function.inner, arguments, count, names);
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) [[unlikely]]
    explain(function, arguments, static_cast<size_t>(PyVectorcall_NARGS(count)), names);
  return result;
}

// Arguments with the parameter names of nanobind's function. Leaves out arguments of kMayBeNone that are None.
struct Renamed {
  Renamed(const Function& function, PyObject* const* given, size_t positional, PyObject* given_names)
      : arguments(given, given + positional) {
    nb::list kept;
    for (Py_ssize_t i = 0; i < list_size(given_names); ++i) {
      PyObject* const name = list_item(given_names, i);
      PyObject* const value = given[positional + static_cast<size_t>(i)];
      has_axis |= is_name(name, "axis");
      PyObject* const ours = PyDict_GetItemWithError(function.further_names, name);
      const nb::handle called = ours ? ours : name;
      if (PySequence_Contains(kept.ptr(), called.ptr()) == 1)
        throw nb::type_error(
            ("[call] '" + std::string(nb::str(called).c_str()) + "' is given twice, by two of its names").c_str());
      if (value == Py_None && is_among(called.ptr(), kMayBeNone)) continue;
      if (function.draws && is_name(called.ptr(), "generator")) {
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

// Sets the device's generator to the state of a Generator, and stores the new state in the Generator at the end.
class Drawing {
 public:
  Drawing(PyObject* function, nb::handle generator) : generator_(nb::borrow(generator)) {
    if (!nb::hasattr(generator, "_begin")) {
      const auto name = nb::cast<std::string>(nb::handle(function).attr("__name__"));
      throw nb::type_error(("[" + name + "] generator must be None or a plugrad.Generator").c_str());
    }
    generator_.attr("_begin")();
  }
  ~Drawing() {
    const nb::error_scope kept;  // the call may have failed
    try {
      generator_.attr("_end")();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a generator's state");
    }
  }

 private:
  nb::object generator_;
};

bool has_further_names(const Function& function, PyObject* const* values, PyObject* names) {
  for (Py_ssize_t i = 0; i < list_size(names); ++i) {
    PyObject* const name = list_item(names, i);
    if (PyDict_GetItemWithError(function.further_names, name)) return true;
    if (values[i] == Py_None && is_among(name, kMayBeNone)) return true;
  }
  return false;
}

PyObject* run_renamed(const Function& function, PyObject* const* arguments, size_t positional, PyObject* names) {
  const Renamed renamed(function, arguments, positional, names);
  std::optional<Drawing> drawing;
  if (renamed.generator) drawing.emplace(function.inner, renamed.generator);
  PyObject* const left = nb::len(renamed.names) ? renamed.names.ptr() : nullptr;
  PyObject* const whole = run(function, renamed.arguments.data(), positional, left);
  return renamed.has_axis && whole ? values_alone(whole) : whole;
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t count, PyObject* names) noexcept {
  const Function& function = function_of(self);
  const auto positional = static_cast<size_t>(PyVectorcall_NARGS(count));
  if (dispatcher && function.dispatches) [[unlikely]]
    if (has_derived(arguments, positional + static_cast<size_t>(names ? list_size(names) : 0)))
      return dispatched(self, arguments, positional, names);
  if (!names || !has_further_names(function, arguments + positional, names)) return run(function, arguments, count, names);
  return guarded<PyObject*>(nullptr, [&] { return run_renamed(function, arguments, positional, names); });
}

// --- The two types: functions of the module, and methods, which Python binds to an object.

PyObject* attribute(PyObject* self, PyObject* name) {
  static constexpr std::array kInner = {"__name__", "__qualname__", "__module__", "__doc__", "__nb_signature__"};
  if (is_among(name, kInner)) return PyObject_GetAttr(function_of(self).inner, name);
  if (!is_name(name, "__signature__")) return PyObject_GenericGetAttr(self, name);
  return guarded<PyObject*>(nullptr, [self] {
    const nb::object signature = nb::module_::import_("plugrad._signatures").attr("of");
    return signature(nb::handle(function_of(self).inner)).release().ptr();
  });
}

PyObject* shown(PyObject* self) {
  return guarded<PyObject*>(nullptr, [self] {
    return nb::str("<{} {}>").format(type_name_of(self), nb::handle(self).attr("__qualname__")).release().ptr();
  });
}

// Pickle finds a function by its name.
PyObject* reduced(PyObject* self, PyObject*) { return PyObject_GetAttrString(function_of(self).inner, "__qualname__"); }

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  if (function_of(self).weak_references) PyObject_ClearWeakRefs(self);
  Py_XDECREF(function_of(self).inner);
  Py_XDECREF(function_of(self).name);
  Py_XDECREF(function_of(self).further_names);
  slot_of<freefunc>(type, Py_tp_free)(self);
  Py_DECREF(type);
}

// Returns the method and its object as one callable, as for x.relu.
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (!object) return Py_NewRef(self);
  static PyObject* const method = nb::module_::import_("types").attr("MethodType").inc_ref().ptr();
  return PyObject_CallFunctionObjArgs(method, self, object, nullptr);
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "[function] functions of plugrad cannot be made");
  return nullptr;
}

PyTypeObject* new_type(const char* name, bool is_method) {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, vectorcall), READONLY, nullptr},
                                  {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak_references), READONLY, nullptr},
                                  {nullptr, 0, 0, 0, nullptr}};
  static PyMethodDef methods[] = {{"__reduce__", reduced, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_members, members},
                         {Py_tp_methods, methods},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
                         {Py_tp_repr, reinterpret_cast<void*>(shown)},
                         {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                         {is_method ? Py_tp_descr_get : 0, reinterpret_cast<void*>(bind)},
                         {0, nullptr}};
  constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Spec spec{name, sizeof(Function), 0,
                   static_cast<unsigned>(is_method ? kFlags | Py_TPFLAGS_METHOD_DESCRIPTOR : kFlags), slots};
  PyObject* const type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

PyTypeObject* function_type(bool is_method) {
  static PyTypeObject* const types[] = {new_type("plugrad._plugrad.function", false),
                                        new_type("plugrad._plugrad.method", true)};
  return types[is_method];
}

// --- Constructors, which nanobind calls directly. A last overload raises the error that no overload fits.

void bind_refusal(nb::handle type) {
  const auto refuse = [type](nb::handle self, const nb::args& given, AfterAll, const nb::kwargs& named) {
    const nb::object sentence =
        nb::module_::import_("plugrad._messages").attr("refused")(type, self.type().attr("__name__"), given, named);
    throw nb::type_error(nb::cast<std::string>(sentence).c_str());
  };
  nb::cpp_function_def(refuse, nb::scope(type), nb::name("__init__"), nb::is_method(), nb::arg("given"),
                       nb::arg("_").none() = nb::none(), nb::arg("named"));
}

// --- Functions in place of nanobind's.

// Functions behind the dispatch of derived classes.
constexpr std::array<std::string_view, 5> kNeverDispatched = {"as_subclass", "_make_subclass", "_is_ready", "_undispatched",
                                                              "_dispatch_by"};

class Functions {
 public:
  Functions() {
    for (const CallName& each : call_names()) names_[each.function].push_back(each);
  }

  // Returns the Function that wraps a nanobind function, always the same one; a null object for any other object.
  nb::object around(nb::handle inner, nb::handle name) {
    const std::string type = type_name_of(inner);
    if (type != "nb_func" && type != "nb_method") return {};
    nb::object& made = made_[inner.ptr()];
    if (!made.is_valid()) made = new_function(inner, name, type == "nb_method");
    return made;
  }

  // Wraps the members of a module or of a class.
  void wrap(nb::handle owner) {
    for (const nb::handle each : nb::list(owner.attr("__dict__").attr("items")())) {
      const nb::object name = each[0];
      const nb::handle member = each[1];
      if (nb::object made = is_name(name.ptr(), "__init__") ? nb::object() : around(member, name); made.is_valid())
        nb::setattr(owner, name, made);
      else if (Py_TYPE(member.ptr()) == &PyProperty_Type)
        if (nb::object setter = around(member.attr("fset"), name); setter.is_valid())
          nb::setattr(owner, name, member.attr("setter")(setter));
    }
  }

 private:
  nb::object new_function(nb::handle inner, nb::handle shown_name, bool is_method) {
    PyTypeObject* const type = function_type(is_method);
    nb::object made = nb::steal(slot_of<allocfunc>(type, Py_tp_alloc)(type, 0));
    if (!made.is_valid()) throw nb::python_error();
    const auto name = nb::cast<std::string>(inner.attr("__name__"));
    Function& function = function_of(made.ptr());
    function.vectorcall = call;
    function.inner = inner.inc_ref().ptr();
    function.run = caller_of(function.inner);
    function.name = shown_name.inc_ref().ptr();
    function.draws = std::ranges::any_of(drawing_functions(), [&](const char* each) { return name == each; });
    function.dispatches = !name.starts_with("__") && !std::ranges::count(kNeverDispatched, name);
    function.further_names = further_names(name, function.draws).release().ptr();
    return made;
  }

  // Returns the further names of a function's parameters. A function's own names replace the general names.
  nb::dict further_names(const std::string& function, bool draws) {
    nb::dict all;
    for (const std::string& each : {std::string(), function})
      for (const CallName& row : names_[each]) all[row.theirs] = row.ours;
    if (draws) all["generator"] = "generator";
    return all;
  }

  std::map<std::string, std::vector<CallName>> names_;
  std::map<PyObject*, nb::object> made_;
};

void wrap_functions(nb::handle module) {
  Functions functions;
  const nb::list members = nb::list(module.attr("__dict__").attr("values")());
  functions.wrap(module);
  for (const nb::handle member : members) {
    if (!PyType_Check(member.ptr()) || !nb::type_check(member)) continue;
    if (type_name_of(member.attr("__dict__").attr("get")("__init__")) == "nb_method") bind_refusal(member);
    functions.wrap(member);
  }
}
}  // namespace

void bind_calls(nb::module_& m) { m.def("_wrap_functions", wrap_functions); }

}  // namespace plugrad::python
