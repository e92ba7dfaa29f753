// ONNX models; plugrad/onnx.py makes a class of them.
#include <python/binding.hpp>

#include <plugrad/io/onnx.hpp>

#include <nanobind/stl/map.h>

#include <string>
#include <vector>

namespace plugrad::python {
namespace {

// A tensor, a list of tensors or None.
io::OnnxValue onnx_value_of(const nb::handle& given) {
  if (given.is_none()) return {};
  if (is_tensor(given.ptr())) return tensor_in(given.ptr());
  std::vector<Tensor> all;
  for (const nb::handle each : nb::cast<nb::list>(given)) all.push_back(tensor_in(each.ptr()));
  return all;
}

nb::object object_of(const io::OnnxValue& value) {
  if (const Tensor* tensor = std::get_if<Tensor>(&value)) return wrap(Tensor(*tensor));
  if (value.index() == 0) return nb::none();
  nb::list all;
  for (const Tensor& each : std::get<std::vector<Tensor>>(value)) all.append(wrap(Tensor(each)));
  return all;
}

nb::list call_onnx(const io::OnnxModel& model, const nb::list& inputs) {
  std::vector<io::OnnxValue> values;
  for (const nb::handle each : inputs) values.push_back(onnx_value_of(each));
  const std::vector<io::OnnxValue> outputs = unlocked([&] { return model.run(values); });
  nb::list all;
  for (const io::OnnxValue& each : outputs) all.append(object_of(each));
  return all;
}

// Returns tuples of name, type and shape: numbers, symbols, and None for unknown extents; None for an unknown shape.
nb::list declarations(const std::vector<io::OnnxDeclaration>& declared) {
  nb::list all;
  for (const io::OnnxDeclaration& each : declared) {
    nb::object shape = nb::none();
    if (each.shape) {
      nb::list extents;
      for (const auto& extent : *each.shape) {
        if (extent.value) extents.append(*extent.value);
        else if (extent.symbol.empty()) extents.append(nb::none());
        else extents.append(extent.symbol);
      }
      shape = nb::tuple(extents);
    }
    all.append(nb::make_tuple(each.name, each.type, shape));
  }
  return all;
}
}  // namespace

void bind_onnx(nb::module_& m) {
  nb::class_<io::OnnxModel>(m, "_OnnxModel")
      .def("call", call_onnx, nb::arg("inputs"))
      .def("inputs", [](const io::OnnxModel& self) { return declarations(self.inputs()); })
      .def("outputs", [](const io::OnnxModel& self) { return declarations(self.outputs()); })
      .def("device", [](const io::OnnxModel& self) { return self.device().name(); })
      .def(
          "save",
          [](const io::OnnxModel& self, const nb::object& path, const nb::list& inputs) {
            std::vector<Tensor> tensors;
            for (const nb::handle each : inputs) tensors.push_back(tensor_in(each.ptr()));
            unlocked([&, file = path_of(path)] { self.save(file, tensors); });
          },
          nb::arg("path"), nb::arg("inputs"))
      .def("explain", [](const io::OnnxModel& self) { return unlocked([&] { return self.explain(); }); });
  m.def(
      "_load_onnx",
      [](const nb::object& path, const DeviceLike& device, const std::map<std::string, Tensor>& bind, bool record,
         size_t lanes, uint64_t memory, bool mmap) {
        return unlocked([&, file = path_of(path), on = device.get()] {
          return io::load_onnx(
              file, {.device = on, .bind = bind, .record = record, .lanes = lanes, .memory = memory, .mmap = mmap});
        });
      },
      nb::arg("path"), nb::arg("device").none(), nb::arg("bind"), nb::arg("record"), nb::arg("lanes"), nb::arg("memory"),
      nb::arg("mmap"));
}

}  // namespace plugrad::python
