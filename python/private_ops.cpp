// Private ops of a plugin, called by name.
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
        "Runs a private op of the plugin of the inputs' device by its name, and returns the results of the op.\n\n"
        "results: the (shape, dtype) of each result. attributes: a struct as the plugin documents it, made by\n"
        "`struct.pack`; the first four bytes of the struct are its size, which the call fills in. gradient: a function of\n"
        "(gradients of the results, inputs, results), each a list, that returns a gradient or None for each input; without\n"
        "gradient, results have no graph.\n"
        "Raises ValueError for an unknown name and for arguments that do not fit the op, and NotImplementedError if the\n"
        "plugin has no kernel for these dtypes.");
  m.def("private_ops", listed, nb::arg("device") = nb::none(),
        nb::sig("def private_ops(device: typing.Any = None) -> list[dict[str, typing.Any]]"),
        "Returns the private ops of a device's plugin, each as a dict: name, opcode, outputs, inputs, attribute_bytes.");
}

}  // namespace plugrad::python
