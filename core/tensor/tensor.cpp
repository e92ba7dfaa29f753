#include <plugrad/tensor/tensor.hpp>

#include <core/runtime/memory/transfer.hpp>
#include <core/tensor/checked.hpp>
#include <core/tensor/impl.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace plugrad {

std::vector<unsigned char> zeros_and_ones(const void* elements, size_t count) {
  const auto* bytes = static_cast<const unsigned char*>(elements);
  if (std::all_of(bytes, bytes + count, [](unsigned char b) { return b <= 1; })) return {};
  std::vector<unsigned char> fixed(bytes, bytes + count);
  for (unsigned char& b : fixed) b = b != 0;
  return fixed;
}

Tensor Tensor::from_host(const void* elements, size_t count, DType dtype, const Shape& shape, Device device) {
  if (shape.count() != static_cast<int64_t>(count))
    throw Error(Code::invalid, "[tensor] " + std::to_string(count) + " elements given for shape " + shape.text() +
                                   ", which has " + std::to_string(shape.count()));
  Tensor out = empty(Op::COPY, state_of(device), shape, id_of(dtype), true);
  const std::vector<unsigned char> bools =
      dtype == DType::boolean ? zeros_and_ones(elements, count) : std::vector<unsigned char>();
  transfer::upload(*storage_of(out), 0, bools.empty() ? elements : bools.data(),
                   count * static_cast<uint64_t>(item_size(dtype)));
  return out;
}

namespace {
const Impl& asked(const Tensor& x, const char* what) {
  require_defined(x, what);
  return x.impl();
}
}  // namespace

Device Tensor::device() const { return Device(asked(*this, "device").device); }
DType Tensor::dtype() const { return static_cast<DType>(asked(*this, "dtype").view.dtype); }
int Tensor::rank() const { return asked(*this, "rank").view.rank; }
Shape Tensor::shape() const { return shape_of(asked(*this, "shape").view); }
Shape Tensor::strides() const {
  const plugrad_view& v = asked(*this, "strides").view;
  return Shape(std::span<const int64_t>(v.strides, v.rank));
}
int64_t Tensor::size(int axis) const { return asked(*this, "size").view.shape[normal_axis(axis, rank(), "size")]; }
int64_t Tensor::count() const { return asked(*this, "count").view.count; }
bool Tensor::is_contiguous() const { return is_dense(asked(*this, "is_contiguous").view); }

void Tensor::copy_to_host(void* elements) const {
  require_defined(*this, "read");
  const Tensor source = dense(*this);
  Storage& storage = *storage_of(source);
  transfer::download(elements, storage, view_of(source).offset - storage.offset,
                     static_cast<uint64_t>(count() * item_size(dtype())));
}

size_t Tensor::count_as(DType wanted) const {
  require_defined(*this, "read");
  if (dtype() != wanted && !(dtype() == DType::boolean && wanted == DType::u8))
    throw Error(Code::invalid, std::string("[read] cannot read a tensor of ") + dtype_name(dtype()) + " as " +
                                   dtype_name(wanted) + ": cast it first");
  return static_cast<size_t>(count());
}

namespace {
void require_one_element(const Tensor& x) {
  if (x.count() != 1) throw Error(Code::invalid, "[item] one element expected, but the shape is " + x.shape().text());
}

template <class T> T only_element(const Tensor& x) {
  require_defined(x, "item");
  require_one_element(x);
  T value{};
  const bool is_real = with_element_type(view_of(x).dtype, [&]<class Held>(Held) {
    HostType<Held> held;
    x.copy_to_host(&held);
    value = static_cast<T>(held);
  });
  if (!is_real)
    throw Error(Code::invalid, std::string("[item] a number of ") + dtype_name(x.dtype()) +
                                   " is not real: read it as std::complex<double>, or read real(x) or abs(x)");
  return value;
}

template <class Parts, class T> Parts read_parts(const Tensor& x) {
  T parts[2];
  x.copy_to_host(parts);
  return {parts[0], parts[1]};
}
}  // namespace

Tensor::Parts Tensor::only_number() const {
  require_defined(*this, "item");
  if (!is_complex(dtype())) return {only_element<double>(*this), 0};
  require_one_element(*this);
  return dtype() == DType::c128 ? read_parts<Parts, double>(*this) : read_parts<Parts, float>(*this);
}

template <> double Tensor::item<double>() const { return only_element<double>(*this); }
template <> float Tensor::item<float>() const { return only_element<float>(*this); }
template <> int64_t Tensor::item<int64_t>() const { return only_element<int64_t>(*this); }
template <> bool Tensor::item<bool>() const {
  const Parts parts = only_number();
  return parts.real != 0 || parts.imag != 0;
}
}  // namespace plugrad
