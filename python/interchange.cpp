// Memory shared with other libraries: DLPack export and import, the buffer protocol, and NumPy.
#include <python/binding.hpp>
#include <python/held.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/tensor/dlpack.hpp>
#include <plugrad/tensor/dtype_names.hpp>

#include <nanobind/stl/optional.h>

#include <cstring>
#include <memory>

namespace plugrad::python {
namespace {

constexpr int32_t kCuda = 2, kRocm = 10;  // DLPack's types of devices
constexpr const char *kOld = "dltensor", *kVersioned = "dltensor_versioned";
constexpr const char *kUsedOld = "used_dltensor", *kUsedVersioned = "used_dltensor_versioned";

// --- Export.

template <class M> void drop(M* managed) {
  if (managed && managed->deleter) managed->deleter(managed);
}

// Releases the tensor of a capsule that no consumer took.
void end_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kOld)) drop(static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, kOld)));
  if (PyCapsule_IsValid(capsule, kVersioned))
    drop(static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersioned)));
}

bool wants_version(const nb::object& max_version) {
  return !max_version.is_none() &&
         nb::cast<int64_t>(max_version[nb::int_(0)]) >= static_cast<int64_t>(dlpack::kVersion.major);
}

dlpack::Place place_from(const nb::object& pair) {
  return {nb::cast<int32_t>(pair[nb::int_(0)]), nb::cast<int32_t>(pair[nb::int_(1)])};
}

Tensor for_export(const Tensor& x, const nb::object& dl_device, std::optional<bool> copy, bool& copied) {
  Tensor source = x;
  if (!dl_device.is_none()) {
    const dlpack::Place place = place_from(dl_device);
    const dlpack::Place here = dlpack::place_of(x);
    if (place.type != here.type || place.index != here.index) {
      if (copy && !*copy) throw nb::buffer_error("[dlpack] another device needs a copy, which copy=False forbids");
      source = unlocked([x, device = dlpack::device_of(place)] { return to(x.detach(), device); });
      copied = true;
      return source;
    }
  }
  if (copy.value_or(false)) {
    source = unlocked([x] { return clone(x.detach()); });
    copied = true;
  }
  return source;
}

// Returns the order for the consumer's stream, given as the array API numbers streams: None is the default stream, and -1
// asks for no ordering. For CUDA 1 is the legacy default stream and 2 the per-thread default stream; for ROCm 0 is the
// default stream. All other numbers are handles.
dlpack::Order consumer_order(const nb::object& stream, int32_t dlpack_type) {
  if (stream.is_none()) return dlpack::Order::stream(nullptr);
  const int64_t number = nb::cast<int64_t>(stream);
  if (number == -1) return dlpack::Order::none();
  const auto refuse = [number](const char* expected) {
    throw Error(Code::invalid, "[__dlpack__] stream " + std::to_string(number) + ": " + expected);
  };
  if (number < -1) refuse("expected -1 (no order), None (the default stream) or the handle of a stream");
  if (dlpack_type == kCuda && number == 0) refuse("ambiguous for CUDA, expected 1 (legacy default) or 2 (per thread)");
  if (dlpack_type == kRocm && (number == 1 || number == 2)) refuse("not a stream of ROCm: 0 is its default stream");
  return dlpack::Order::stream(reinterpret_cast<void*>(number));
}

// stream: the consumer's stream.
nb::object to_capsule(const Tensor& x, const nb::object& stream, const nb::object& max_version, const nb::object& dl_device,
                      std::optional<bool> copy) {
  bool copied = false;
  const dlpack::Order order = consumer_order(stream, dlpack::place_of(x).type);
  const Tensor source = for_export(x, dl_device, copy, copied);
  const bool versioned = wants_version(max_version);
  const uint64_t flags = copied ? dlpack::kIsCopied : 0;
  void* managed = versioned ? static_cast<void*>(unlocked([&] { return dlpack::export_versioned(source, flags, order); }))
                            : static_cast<void*>(unlocked([&] { return dlpack::export_managed(source, order); }));
  PyObject* capsule = PyCapsule_New(managed, versioned ? kVersioned : kOld, end_capsule);
  if (capsule) return nb::steal(capsule);
  if (versioned) drop(static_cast<dlpack::ManagedVersioned*>(managed));
  else drop(static_cast<dlpack::Managed*>(managed));
  throw nb::python_error();
}

nb::object place_tuple(const Tensor& x) {
  const dlpack::Place place = dlpack::place_of(x);
  return nb::make_tuple(place.type, place.index);
}

// --- Import. The producer's deleter often needs the GIL.

// Wraps a producer's managed array so that its deleter runs only under the GIL.
template <class M> M* wrapped(M* theirs) {
  auto* own = new M(*theirs);
  own->context = theirs;
  own->deleter = [](M* self) {
    release_under_gil(self->context, [](void* managed) { drop(static_cast<M*>(managed)); });
    delete self;
  };
  return own;
}

template <class M>
Tensor import_capsule(const nb::object& capsule, const char* name, const char* used, Device device, dlpack::Order order,
                      Tensor (*import)(M*, Device, dlpack::Order)) {
  M* const own = wrapped(static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), name)));
  try {
    Tensor made = import(own, device, order);
    PyCapsule_SetName(capsule.ptr(), used);
    return made;
  } catch (...) {
    delete own;
    throw;
  }
}

Tensor from_capsule(const nb::object& capsule, Device device, dlpack::Order order) {
  release_waiting();
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned))
    return import_capsule<dlpack::ManagedVersioned>(capsule, kVersioned, kUsedVersioned, device, order,
                                                    dlpack::import_versioned);
  if (PyCapsule_IsValid(capsule.ptr(), kOld))
    return import_capsule<dlpack::Managed>(capsule, kOld, kUsedOld, device, order, dlpack::import_managed);
  throw nb::value_error("[from_dlpack] this capsule holds no array, or a consumer took it already");
}

// Returns our stream that the producer must make wait, if the array reports a device with streams. Sets `device` unless the
// caller named it.
std::optional<void*> stream_for(const nb::object& array, Device& device) {
  if (!nb::hasattr(array, "__dlpack_device__")) return std::nullopt;
  const dlpack::Place place = place_from(array.attr("__dlpack_device__")());
  if (!device.defined()) device = dlpack::device_of(place);
  return place.type == device.dlpack_type() ? dlpack::stream_of(device) : std::nullopt;
}

// Returns the array's capsule after the producer has made `stream` wait. The protocol has max_version since version 1.
nb::object capsule_of(const nb::object& array, const std::optional<void*>& stream) {
  const nb::object method = array.attr("__dlpack__");
  nb::dict arguments;
  if (stream) arguments["stream"] = reinterpret_cast<intptr_t>(*stream);
  try {
    return method(nb::arg("max_version") = nb::make_tuple(dlpack::kVersion.major, dlpack::kVersion.minor), **arguments);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method(**arguments);
}

// Returns whether this device can use the array in its present memory, without a copy.
bool shares_memory(const nb::object& array, const Device& device) {
  if (!nb::hasattr(array, "__dlpack_device__")) return true;
  if (!device.dlpack_type()) return false;
  const dlpack::Place place = place_from(array.attr("__dlpack_device__")());
  const dlpack::Place own = dlpack::place_of(device);
  return place.type == own.type && place.index == own.index;
}

Tensor imported(const nb::object& array, Device target) {
  if (PyCapsule_CheckExact(array.ptr())) return from_capsule(array, target, dlpack::Order::stream(nullptr));
  const std::optional<void*> stream = stream_for(array, target);
  return from_capsule(capsule_of(array, stream), target, dlpack::Order::stream(stream.value_or(nullptr)));
}

Tensor from_dlpack(const nb::object& array, const nb::object& device, std::optional<bool> copy) {
  search_entry_points();
  const Device target = device.is_none() ? Device() : nb::cast<DeviceLike>(device).get();
  if (!PyCapsule_CheckExact(array.ptr()) && !nb::hasattr(array, "__dlpack__"))
    throw nb::type_error("[from_dlpack] expected an object with __dlpack__, or a capsule");
  const bool moves = target.defined() && !shares_memory(array, target);
  if (moves && copy && !*copy) throw nb::buffer_error("[from_dlpack] another device needs a copy, which copy=False forbids");
  const Tensor shared = imported(array, moves ? Device() : target);
  if (!moves && !copy.value_or(false)) return shared;
  return unlocked([=] { return moves ? to(shared, target) : clone(shared); });
}

// --- The buffer protocol, for memory that the host can read.

struct Export {
  dlpack::Managed* managed;
  Py_ssize_t shape[PLUGRAD_MAX_RANK], strides[PLUGRAD_MAX_RANK];
};

int refuse_buffer(Py_buffer* view, const char* why) {
  view->obj = nullptr;
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  return guarded(-1, [=] {
    const Tensor& x = tensor_in(self);
    if (x.device().dlpack_type() != 1)
      return refuse_buffer(view, "[buffer] the host cannot read the memory of this device: call cpu() first");
    if (!names_of(x.dtype()).format)
      return refuse_buffer(view, "[buffer] arrays have no format for this dtype: cast it first, for instance to f32");
    const bool read_only = x.requires_grad();
    if (read_only && (flags & PyBUF_WRITABLE))
      return refuse_buffer(view, "[buffer] a tensor that requires gradients is exported read-only: detach() it");
    if (!(flags & PyBUF_STRIDES) && !x.is_contiguous())
      return refuse_buffer(view, "[buffer] this view has gaps: call contiguous() first");
    auto own = std::make_unique<Export>();
    own->managed = dlpack::export_managed(x);
    const int64_t size = item_size(x.dtype());
    const Shape shape = x.shape(), strides = x.strides();
    for (size_t i = 0; i < shape.size(); ++i) own->shape[i] = shape[i], own->strides[i] = strides[i] * size;
    view->buf = own->managed->array.data;
    view->len = x.count() * size;
    view->itemsize = size;
    view->readonly = read_only;
    view->ndim = x.rank();
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(names_of(x.dtype()).format) : nullptr;
    view->shape = flags & PyBUF_ND ? own->shape : nullptr;
    view->strides = flags & PyBUF_STRIDES ? own->strides : nullptr;
    view->suboffsets = nullptr;
    view->internal = own.release();
    Py_INCREF(self);
    view->obj = self;
    return 0;
  });
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  auto* own = static_cast<Export*>(view->internal);
  drop(own->managed);
  delete own;
}

// --- NumPy.

nb::object to_array(const nb::object& self, const nb::object& dtype, const nb::object& copy) {
  const Tensor x = nb::cast<Tensor>(self);
  const bool on_host = x.device().dlpack_type() == 1;
  if (!on_host && !copy.is_none() && !nb::cast<bool>(copy))
    throw nb::value_error("[array] memory of another device needs a copy, which copy=False forbids");
  const nb::object host =
      on_host ? self : wrap(unlocked([x, device = named_device("cpu")] { return to(x.detach(), device); }));
  const nb::object view = nb::module_::import_("numpy").attr("asarray")(nb::steal(PyMemoryView_FromObject(host.ptr())));
  if (dtype.is_none() && (copy.is_none() || !nb::cast<bool>(copy))) return view;
  const bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  return dtype.is_none() ? view.attr("copy")() : view.attr("astype")(dtype, nb::arg("copy") = must_copy);
}

// Calls a function of plugrad._numpy. NumPy's functions end here if a tensor is among their arguments.
template <size_t kLength> nb::object by_numpy(const char (&name)[kLength], const nb::args& given, const nb::kwargs& named) {
  return nb::module_::import_("plugrad._numpy").attr(name)(*given, **named);
}

uintptr_t address_of(const Tensor& x) {
  dlpack::Managed* const managed = dlpack::export_managed(x, dlpack::Order::none());
  const auto address = reinterpret_cast<uintptr_t>(managed->array.data) + managed->array.byte_offset;
  dlpack::note_address(x);
  drop(managed);
  return address;
}

}  // namespace

PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)}};

void bind_interchange(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor
      .def("__dlpack__", to_capsule, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           "Returns a DLPack capsule over the same memory. It is read-only if this requires gradients. On a device with "
           "streams `stream` waits for all work submitted before: None is the default stream, -1 asks for no waiting.")
      .def("__dlpack_device__", place_tuple, "Returns (DLPack device type, index).")
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> numpy.typing.NDArray"),
           "Returns a NumPy array over the same memory if the host can read it, else a copy.")
      .def(
          "numpy", [](const nb::object& self) { return to_array(self, nb::none(), nb::none()); },
          nb::sig("def numpy(self) -> numpy.typing.NDArray"),
          "Returns a NumPy array over the same memory if the host can read it, "
          "else a copy. It is read-only if this requires gradients.")
      .def("data_ptr", address_of,
           "Returns the address of the first element. Does not wait for the device, which may still write to the memory.");
  tensor
      .def(
          "__array_ufunc__", [](const nb::args& given, const nb::kwargs& named) { return by_numpy("ufunc", given, named); },
          "Runs plugrad's op of the same meaning. NumPy's elementwise functions and the operators of arrays call this.")
      .def(
          "__array_function__",
          [](const nb::args& given, const nb::kwargs& named) { return by_numpy("function", given, named); },
          "Runs a NumPy function on tensors as arrays. NumPy's functions that are not elementwise call this.");
  m.def("from_dlpack", from_dlpack, nb::arg("array"), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
        "Returns a tensor over the memory of another library's array, without a copy unless copy is True; read-only arrays "
        "are copied. The tensor requires no gradient. On a device with streams it waits for the work of the array's stream, "
        "or for a capsule for the work of the default stream.\n\n"
        "device: copies the array to this device if the device cannot use the array's memory. Raises BufferError if this "
        "copy is needed and copy is False.\n\n"
        "Raises ValueError for dtypes that plugrad does not have, and for devices that no plugin provides.");
}

}  // namespace plugrad::python
