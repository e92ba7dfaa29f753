// Options for the printed form of tensors.
#include <python/binding.hpp>

#include <plugrad/tensor/print.hpp>

#include <nanobind/stl/optional.h>

namespace plugrad::python {
namespace {

nb::dict options() {
  const PrintOptions now = print_options();
  nb::dict all;
  all["precision"] = now.precision;
  all["threshold"] = now.threshold;
  all["edgeitems"] = now.edge_items;
  all["linewidth"] = now.line_width;
  all["sci_mode"] = now.scientific ? nb::object(nb::bool_(*now.scientific)) : nb::none();
  return all;
}

}  // namespace

void bind_printing(nb::module_& m) {
  m.def("get_printoptions", options, "Returns the print options as a dict: the arguments of set_printoptions.");
  m.def("_set_print_options",
        [](int precision, int64_t threshold, int64_t edge_items, int64_t line_width, std::optional<bool> scientific) {
          set_print_options({precision, threshold, edge_items, line_width, scientific});
        });
}

}  // namespace plugrad::python
