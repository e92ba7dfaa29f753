// Files and data sets.
#include <python/binding.hpp>

#include <plugrad/io/cifar.hpp>
#include <plugrad/io/fashion_mnist.hpp>
#include <plugrad/io/idx.hpp>
#include <plugrad/io/moons.hpp>
#include <plugrad/io/safetensors.hpp>
#include <plugrad/io/shuffle.hpp>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <map>

namespace plugrad::python {
namespace {

// Scales pixels from 0 .. 255 to 0 .. 1.
Tensor scaled(const std::vector<uint8_t>& pixels, const Shape& shape, Device device) {
  const NoGrad unrecorded;
  std::vector<float> values(pixels.size());
  std::ranges::transform(pixels, values.begin(), [](uint8_t p) { return static_cast<float>(p) / 255.0f; });
  return Tensor::from(values, shape, device);
}
Tensor labels_of(const std::vector<uint8_t>& labels, Device device) {
  return Tensor::from(std::vector<int64_t>(labels.begin(), labels.end()), {static_cast<int64_t>(labels.size())}, device);
}

nb::object images(const io::LabelledImages& set, Device device) {
  const auto [pixels, labels] = unlocked([&] {
    return std::pair{scaled(set.pixels, {set.count, set.rows, set.columns}, device), labels_of(set.labels, device)};
  });
  return nb::make_tuple(pixels, labels);
}

nb::object fashion_mnist(const nb::object& directory, const DeviceLike& device) {
  const std::string folder = directory.is_none() ? io::kFashionMnistDirectory : path_of(directory);
  const Device where = device.get();
  const io::FashionMnist files = unlocked([folder] { return io::read_fashion_mnist(folder); });
  return nb::make_tuple(images(files.train, where), images(files.test, where));
}

nb::object cifar_images(const io::CifarImages& set, bool coarse, Device device) {
  const auto [pixels, labels] = unlocked([&] {
    return std::pair{scaled(set.pixels, {set.count, 3, 32, 32}, device),
                     labels_of(coarse ? set.coarse_labels : set.labels, device)};
  });
  return nb::make_tuple(pixels, labels);
}

nb::object cifar(const nb::object& directory, bool hundred, bool coarse, const DeviceLike& device) {
  const Device where = device.get();
  const io::CifarKind kind = hundred ? io::CifarKind::hundred : io::CifarKind::ten;
  const io::Cifar files = unlocked([folder = path_of(directory), kind] { return io::read_cifar(folder, kind); });
  return nb::make_tuple(cifar_images(files.train, coarse, where), cifar_images(files.test, coarse, where));
}

nb::object moons(int64_t count, double noise, uint64_t seed, const DeviceLike& device) {
  const Device where = device.get();
  const io::Moons all = io::make_moons(count, noise, seed);
  return nb::make_tuple(Tensor::from(all.points, {count, 2}, where), Tensor::from(all.labels, {count}, where));
}

Tensor idx(const nb::object& path, const DeviceLike& device) {
  const Device where = device.get();
  return unlocked([file = path_of(path), where] {
    const io::IdxArray array = io::read_idx(file);
    return Tensor::from(std::vector<int64_t>(array.elements.begin(), array.elements.end()), Shape(array.extents), where);
  });
}

io::Metadata texts_of(const nb::object& metadata) {
  io::Metadata texts;
  if (metadata.is_none()) return texts;
  if (!nb::isinstance<nb::dict>(metadata)) throw nb::type_error("[save] metadata must be a dict of texts by name");
  for (const auto& [name, text] : nb::borrow<nb::dict>(metadata)) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<nb::str>(text))
      throw nb::type_error(("[save] metadata holds texts by name, but the value of " + std::string(nb::repr(name).c_str()) +
                            " is of type " + type_name_of(text) + ": store str(value)")
                               .c_str());
    texts.emplace(nb::cast<std::string>(name), nb::cast<std::string>(text));
  }
  return texts;
}

void save(const nb::dict& tensors, const nb::object& path, const nb::object& metadata) {
  std::map<std::string, Tensor> all;
  for (const auto& [name, tensor] : tensors) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<Tensor>(tensor))
      throw nb::type_error("[save] a dict of tensors by name expected: {'weight': tensor}");
    all.emplace(nb::cast<std::string>(name), nb::cast<Tensor>(tensor));
  }
  const io::Metadata text = texts_of(metadata);
  unlocked([file = path_of(path), &all, &text] { io::write_safetensors(file, all, text); });
}
}  // namespace

void bind_io(nb::module_& m) {
  m.def("_save_safetensors", save, nb::arg("tensors"), nb::arg("path"), nb::arg("metadata").none());
  m.def(
      "_load_safetensors",
      [](const nb::object& path, const DeviceLike& device) {
        return unlocked([file = path_of(path), on = device.get()] { return io::read_safetensors(file, on).tensors; });
      },
      nb::arg("path"), nb::arg("device").none());
  m.def(
      "load_metadata",
      [](const nb::object& path) {
        return unlocked([file = path_of(path)] { return io::read_safetensors_header(file).metadata; });
      },
      nb::arg("path"), "Returns the metadata of a safetensors file: a dict of texts by name.");
  m.def("_shuffled_rows", &io::shuffled_rows, nb::arg("count"), nb::arg("seed"), nb::arg("epoch"));
  m.def("_fashion_mnist", fashion_mnist, nb::arg("directory").none(), nb::arg("device").none());
  m.def("_moons", moons, nb::arg("count"), nb::arg("noise"), nb::arg("seed"), nb::arg("device").none());
  m.def("_cifar", cifar, nb::arg("directory"), nb::arg("hundred"), nb::arg("coarse"), nb::arg("device").none());
  m.def("_read_idx", idx, nb::arg("path"), nb::arg("device").none());
}

}  // namespace plugrad::python
