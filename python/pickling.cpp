// Pickles and deep copies of tensors. A pickle holds the elements.
#include <python/binding.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>

namespace plugrad::python {
namespace {

// How a tensor tracks gradients: as a parameter, by the default of the constructor, as a frozen parameter, or not at all.
enum class Tracking { none, asked, unasked, frozen };

Tracking tracking_of(const Tensor& x) {
  if (x.requires_grad()) return is_parameter(x) ? Tracking::asked : x.is_leaf() ? Tracking::unasked : Tracking::none;
  return is_parameter(x) ? Tracking::frozen : Tracking::none;
}

void track(Tensor& x, Tracking tracking) {
  if (tracking == Tracking::unasked) track_unasked(x);
  else if (tracking != Tracking::none) x.requires_grad_();
  if (tracking == Tracking::frozen) x.requires_grad_(false);
}

nb::object pickled(const nb::object& self) {
  const Tensor x = nb::cast<Tensor>(self);
  const size_t bytes = static_cast<size_t>(x.count() * item_size(x.dtype()));
  nb::object elements = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
  if (!elements.is_valid()) throw nb::python_error();
  char* const raw = PyBytes_AsString(elements.ptr());
  unlocked([&] { x.copy_to_host(raw); });
  return nb::make_tuple(nb::module_::import_("plugrad._pickling").attr("tensor"),
                        nb::make_tuple(elements, dtype_name(x.dtype()), nb::tuple(shape_tuple(x.shape())),
                                       nb::str(nb::cast(x.device())), static_cast<int>(tracking_of(x))));
}

Tensor unpickled(const nb::bytes& elements, const std::string& dtype, const ShapeLike& shape, const std::string& device,
                 int tracking) {
  const DType type = dtype_from_name(dtype);
  const Shape extents = shape.get();
  const size_t count = elements.size() / static_cast<size_t>(item_size(type));
  if (count * static_cast<size_t>(item_size(type)) != elements.size())
    throw Error(Code::invalid, "[unpickle] the bytes are not a whole number of elements");
  Tensor made = Tensor::from_host(elements.c_str(), count, type, extents, named_device(device));
  track(made, static_cast<Tracking>(tracking));
  return made;
}
}  // namespace

namespace {
// Returns a copy that tracks gradients as the tensor does, with a copy of the tensor's gradient.
nb::object copied_deeply(const nb::object& self, nb::dict memo) {
  const Tensor x = nb::cast<Tensor>(self);
  Tensor made = unlocked([&] { return clone(x.detach()); });
  track(made, tracking_of(x));
  if (const Tensor grad = x.grad(); grad.defined()) made.set_grad(unlocked([&] { return clone(grad.detach()); }));
  const nb::object result = nb::cast(made);
  memo[nb::module_::import_("builtins").attr("id")(self)] = result;
  return result;
}
}  // namespace

void bind_pickling(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor.def("__reduce__", pickled);
  tensor.def("__deepcopy__", copied_deeply, nb::arg("memo"),
             "Returns a copy of the elements and of the gradient, outside the graph.");
  m.def("_unpickle", unpickled);
}

}  // namespace plugrad::python
