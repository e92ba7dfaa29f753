// Moves tensors to another device, and converts tensors to another dtype.
#include <python/binding.hpp>

#include <plugrad/tensor/dtype_names.hpp>

#include <nanobind/stl/optional.h>

#include <string>
#include <utility>

namespace plugrad::python {
namespace {

// A device, a dtype, or both.
struct Target {
  std::optional<Device> device;
  std::optional<DType> dtype;

  // given: a device, a dtype, the name of a device or of a dtype, or a tensor, whose device and dtype count.
  void add(nb::handle given) {
    if (nb::isinstance<Tensor>(given)) {
      const Tensor& like = nb::cast<Tensor&>(given);
      device = like.device();
      dtype = like.dtype();
    } else if (nb::isinstance<Device>(given)) {
      device = nb::cast<Device>(given);
    } else if (nb::isinstance<nb::str>(given) && !names_dtype(utf8_of(given))) {
      device = named_device(utf8_of(given));
    } else {
      dtype = DTypeLike{nb::borrow(given)}.get();
    }
  }
};

Tensor moved(const Tensor& x, const nb::args& where, const DeviceLike& device, const DTypeLike& dtype, bool copy, bool) {
  Target target;
  for (const nb::handle each : where) target.add(each);
  if (!device.given.is_none()) target.device = device.get();
  if (!dtype.given.is_none()) target.dtype = dtype.get();
  if (!target.device && !target.dtype && !copy) throw nb::type_error("[to] a device, a dtype or both are expected");
  return unlocked([source = x, target, copy] {
    const Tensor there = target.device ? to(source, *target.device) : source;
    const Tensor fits = target.dtype ? cast(there, *target.dtype) : there;
    return copy && fits.is_same(source) ? clone(fits) : fits;
  });
}

Tensor moved_to(const Tensor& x, const DeviceLike& device, const nb::object& stream) {
  if (!stream.is_none()) throw Error(Code::invalid, "[to_device] plugrad orders its own streams: leave the stream out");
  return unlocked([x, where = device.get()] { return to(x, where); });
}

Tensor cast_to(const Tensor& x, DType dtype) {
  const Tensor source = x;
  return unlocked([&] { return cast(source, dtype); });
}

void bind_casts(nb::class_<Tensor>& tensor) {
  for (const DTypeNames& each : kDTypeNames)
    tensor.def(
        each.method, [to = each.dtype](const Tensor& x) { return cast_to(x, to); },
        (std::string("Returns this tensor in ") + dtype_name(each.dtype) +
         (each.dtype == DType::boolean ? ": x != 0." : "."))
            .c_str());
}

void bind_conversions(nb::class_<Tensor>& tensor) {
  tensor
      .def("to", moved, nb::arg("where"), nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("dtype") = nb::none(),
           nb::arg("copy") = false, nb::arg("non_blocking") = false,
           nb::sig("def to(self, *where: Device | str | DType | type | Tensor, device: Device | str | None = None, "
                   "dtype: DType | str | type | None = None, copy: bool = False, non_blocking: bool = False) -> Tensor"),
           "Returns this tensor on another device, in another dtype, or both; itself if nothing changes and copy is False. "
           "Gradients flow back.\n\nwhere: a device, a dtype, or a tensor, whose device and dtype count. non_blocking is "
           "accepted and ignored: ops wait for copies on their streams, and the program does not wait.")
      .def(
          "type", [](const Tensor& x, const DTypeLike& dtype, bool) { return cast_to(x, dtype.get(x.dtype())); },
          nb::arg("dtype"), nb::arg("non_blocking") = false, "The same as astype.")
      .def(
          "pin_memory", [](const nb::object& self) { return self; },
          "Returns this tensor unchanged, because copies between the host and a device use their own pinned memory.")
      .def(
          "astype", [](const Tensor& x, const DTypeLike& dtype) { return cast_to(x, dtype.get(x.dtype())); },
          nb::arg("dtype"),
          "Returns this tensor in another dtype; itself if nothing changes. Gradients flow between floating dtypes.")
      .def("to_device", moved_to, nb::arg("device"), nb::kw_only(), nb::arg("stream").none() = nb::none(),
           "Returns this tensor on another device; itself if nothing changes. This is the array API's name of to. Raises "
           "ValueError for a stream, because plugrad orders its own streams.")
      .def(
          "type_as", [](const Tensor& x, const Tensor& other) { return cast_to(x, other.dtype()); }, nb::arg("other"),
          "Returns this tensor in the dtype of another tensor; itself if nothing changes.");
}

void bind_places(nb::class_<Tensor>& tensor) {
  tensor
      .def(
          "cpu", [](const Tensor& x) { return unlocked([x, d = named_device("cpu")] { return to(x, d); }); },
          "Returns this tensor on the cpu.")
      .def(
          "cuda",
          [](const Tensor& x, int64_t index, bool) {
            return unlocked([x, d = named_device("cuda:" + std::to_string(index))] { return to(x, d); });
          },
          nb::arg("index") = 0, nb::arg("non_blocking") = false,
          "Returns this tensor on a CUDA device. Raises RuntimeError, with the reason, if there is no such device.")
      .def(
          "move_to_",
          [](Tensor& x, const DeviceLike& device) { unlocked([x, d = device.get()]() mutable { x.move_to_(d); }); },
          nb::arg("device"), "Moves this leaf to another device, in place, so that optimisers keep their handles.")
      .def(
          "convert_",
          [](Tensor& x, const DTypeLike& dtype) { unlocked([x, d = dtype.get(x.dtype())]() mutable { x.convert_(d); }); },
          nb::arg("dtype"),
          "Converts the elements of this leaf, in place, so that optimisers keep their handles. Raises ValueError for the "
          "result of an op, and for a dtype without gradients if this tensor requires one.");
}
}  // namespace

void bind_movers(nb::class_<Tensor>& tensor) {
  bind_conversions(tensor);
  bind_places(tensor);
  bind_casts(tensor);
}

}  // namespace plugrad::python
