// Ops of a plugin's own, called by name.
#include <python/binding.hpp>
#include <python/held.hpp>

#include <utility>
#include <vector>

namespace plugrad::python {
namespace {

nb::list list_of(const std::vector<Tensor>& tensors) {
  nb::list all;
  for (const Tensor& each : tensors) all.append(wrap(each));
  return all;
}

std::vector<Tensor> gradients_in(const nb::object& made) {
  std::vector<Tensor> all;
  for (const nb::handle each : made) all.push_back(each.is_none() ? Tensor() : nb::cast<Tensor>(each));
  return all;
}

nb::object call(const std::string& name, const std::vector<Tensor>& inputs, const nb::list& results,
                const nb::bytes& attributes, const nb::object& gradient) {
  std::vector<PrivateResult> forms;
  for (const nb::handle each : results) {
    const nb::tuple form = nb::cast<nb::tuple>(each);
    if (form.size() != 2) throw nb::value_error(("[" + name + "] results: expected pairs of a shape and a dtype").c_str());
    forms.push_back({nb::cast<ShapeLike>(form[0]).get(), nb::cast<DTypeLike>(form[1]).get(DType::f32)});
  }
  PrivateOpOptions options;
  const auto* bytes = static_cast<const std::byte*>(attributes.data());
  options.attributes.assign(bytes, bytes + attributes.size());
  if (!gradient.is_none())
    options.gradient = [held = Held(gradient)](const std::vector<Tensor>& grads, const std::vector<Tensor>& given,
                                               const std::vector<Tensor>& made) {
      const nb::gil_scoped_acquire locked;
      return gradients_in(nb::borrow(held.get()(list_of(grads), list_of(given), list_of(made))));
    };
  return list_of(unlocked([&] { return private_op(name, inputs, forms, options); }));
}

nb::list listed(const DeviceLike& device) {
  nb::list all;
  for (const PrivateOpInfo& each : private_ops(device.get())) {
    nb::dict row;
    row["name"] = each.name;
    row["opcode"] = each.opcode;
    row["outputs"] = each.outputs;
    row["inputs"] = each.inputs;
    row["attribute_bytes"] = each.attribute_bytes;
    all.append(row);
  }
  return all;
}
}  // namespace

void bind_private_ops(nb::module_& m) {
  m.def("private_op", call, nb::arg("name"), nb::arg("inputs"), nb::arg("results"), nb::arg("attributes") = nb::bytes("", 0),
        nb::arg("gradient") = nb::none(),
        nb::sig("def private_op(name: str, inputs: collections.abc.Sequence[Tensor], results: "
                "list[tuple[typing.Any, typing.Any]], attributes: bytes = b'', gradient: typing.Any = None) -> "
                "list[Tensor]"),
        "Runs an op that the plugin of the inputs' device offers under that name, and returns its results.\n\n"
        "results: (shape, dtype) of each. attributes: a struct as the plugin documents it, made by `struct.pack`; its\n"
        "first four bytes are its size, which the call fills in. gradient: a function of (gradients of the results,\n"
        "inputs, results), each a list, that returns a gradient or None for each input; without it, results have no\n"
        "graph.\n"
        "Raises ValueError for an unknown name and for what does not fit the op, NotImplementedError if the plugin has no\n"
        "kernel for these dtypes.");
  m.def("private_ops", listed, nb::arg("device") = nb::none(),
        nb::sig("def private_ops(device: typing.Any = None) -> list[dict[str, typing.Any]]"),
        "The ops of its own that a device's plugin offers: name, opcode, outputs, inputs, attribute_bytes.");
}

}  // namespace plugrad::python
