// Guards of compiled functions: places with the values that a recording was made for.
#pragma once
#include <python/binding.hpp>

namespace plugrad::python {

// Returns whether each place still has its value. guards: a tuple of (kind, holder, names, expected), written by
// plugrad/_key_texts.py. Needs the GIL.
bool guards_hold(PyObject* guards);

void bind_guards(nb::module_& m);

}  // namespace plugrad::python
