// Files that are read tensor by tensor, safetensors and GGUF, and NumPy's files.
#include <python/binding.hpp>

#include <plugrad/io/gguf.hpp>
#include <plugrad/io/npy.hpp>
#include <plugrad/io/safetensors.hpp>

#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>

#include <map>
#include <memory>

namespace plugrad::python {
void bind_onnx(nb::module_& m);  // of onnx.cpp

namespace {

// Converts a text of a file to str. Bytes that are not UTF-8 become lone surrogates.
nb::object text_of(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

nb::object value_of(const io::GgufValue& value);

struct ValueOf {
  nb::object operator()(bool x) const { return nb::bool_(x); }
  nb::object operator()(int64_t x) const { return nb::int_(x); }
  nb::object operator()(uint64_t x) const { return nb::int_(x); }
  nb::object operator()(double x) const { return nb::float_(x); }
  nb::object operator()(const std::string& x) const { return text_of(x); }
  nb::object operator()(const io::GgufValue& x) const { return value_of(x); }
  template <class T> nb::object operator()(const std::vector<T>& values) const {
    nb::list list;
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) list.append((*this)(static_cast<bool>(values[i])));
      else list.append((*this)(values[i]));
    }
    return list;
  }
};

nb::object value_of(const io::GgufValue& value) { return std::visit(ValueOf{}, value.value); }

nb::object metadata_of(const io::GgufFile& file) {
  nb::dict all;
  for (const auto& [key, value] : file.metadata()) all[text_of(key)] = value_of(value);
  return all;
}

// Returns the type, the shape and the size in bytes of a tensor.
nb::object gguf_info(const io::GgufFile& file, const std::string& name) {
  const io::GgufTensor& tensor = file.info(name);
  return nb::make_tuple(tensor.type, shape_tuple(tensor.shape), tensor.bytes);
}

nb::object raw(const std::shared_ptr<io::GgufFile>& file, const std::string& name) {
  const std::vector<uint8_t> bytes = unlocked([&] { return file->raw(name); });
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

nb::object safetensors_info(const io::SafetensorsFile& file, const std::string& name) {
  const io::TensorEntry& entry = file.info(name);
  return nb::make_tuple(dtype_info(static_cast<uint8_t>(entry.dtype))->name, shape_tuple(entry.shape));
}

// Binds the methods that both kinds of files share. A method copies the handle of the file, which keeps the file open while
// the lock is released.
template <class File> nb::class_<File> bind_file(nb::module_& m, const char* name) {
  using Handle = std::shared_ptr<File>;
  return nb::class_<File>(m, name)
      .def(
          "get",
          [](const Handle& file, const std::string& name, const DeviceLike& device) {
            return unlocked([file, name, where = device.get()] { return file->get(name, where); });
          },
          nb::arg("name"), nb::arg("device") = nb::none())
      .def(
          "rows",
          [](const Handle& file, const std::string& name, int64_t first, int64_t last, const DeviceLike& device) {
            return unlocked([=, where = device.get()] { return file->rows(name, first, last, where); });
          },
          nb::arg("name"), nb::arg("first"), nb::arg("last"), nb::arg("device") = nb::none())
      .def("keys", [](const File& file) {
        nb::list names;
        for (const std::string& each : file.keys()) names.append(text_of(each));
        return names;
      });
}

template <class File> std::shared_ptr<File> opened(const nb::object& path) {
  return unlocked([file = path_of(path)] { return std::make_shared<File>(file); });
}

void bind_numpy_files(nb::module_& m) {
  m.def(
      "_load_npy",
      [](const nb::object& path, const DeviceLike& device) {
        return unlocked([file = path_of(path), where = device.get()] { return io::read_npy(file, where); });
      },
      nb::arg("path"), nb::arg("device") = nb::none());
  m.def(
      "_save_npy",
      [](const Tensor& tensor, const nb::object& path) {
        unlocked([tensor, file = path_of(path)] { io::write_npy(file, tensor); });
      },
      nb::arg("tensor"), nb::arg("path"));
  m.def(
      "_load_npz",
      [](const nb::object& path, const DeviceLike& device) {
        return unlocked([file = path_of(path), where = device.get()] { return io::read_npz(file, where); });
      },
      nb::arg("path"), nb::arg("device") = nb::none());
  m.def(
      "_save_npz",
      [](const std::map<std::string, Tensor>& tensors, const nb::object& path, bool compress) {
        unlocked([tensors, file = path_of(path), compress] { io::write_npz(file, tensors, compress); });
      },
      nb::arg("tensors"), nb::arg("path"), nb::arg("compress"));
}
}  // namespace

void bind_files(nb::module_& m) {
  bind_file<io::SafetensorsFile>(m, "_SafetensorsFile")
      .def("info", safetensors_info)
      .def("metadata", [](const io::SafetensorsFile& file) { return file.header().metadata; });
  m.def("_open_safetensors", opened<io::SafetensorsFile>);
  bind_file<io::GgufFile>(m, "_GgufFile")
      .def("info", gguf_info)
      .def("metadata", metadata_of)
      .def(
          "quantized",
          [](const std::shared_ptr<io::GgufFile>& file, const std::string& name, const DeviceLike& device) {
            return unlocked([file, name, where = device.get()] { return file->quantized(name, where); });
          },
          nb::arg("name"), nb::arg("device") = nb::none())
      .def("version", &io::GgufFile::version)
      .def("raw", raw);
  m.def("_open_gguf", opened<io::GgufFile>);
  bind_numpy_files(m);
  bind_onnx(m);
}

}  // namespace plugrad::python
