#include <plugrad/io/npy.hpp>

#include <core/io/npy_format.hpp>
#include <core/io/opened_file.hpp>
#include <plugrad/io/file.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/tensor/dtype_names.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>

namespace plugrad::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are little-endian in the file and on the host");

using Fail = std::function<void(const std::string&)>;

constexpr size_t kMagicBytes = 6;
constexpr char kMagic[] = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

// Reads the header, a dictionary in Python's syntax that describes the array.
class HeaderText {
 public:
  HeaderText(std::string text, const Fail& fail) : text_(std::move(text)), fail_(fail) {}

  Header parse() {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = word();
      expect(':');
      if (key == "descr" && !descr) descr = true, header_.descr = element_type();
      else if (key == "fortran_order" && !order) order = true, header_.fortran = boolean();
      else if (key == "shape" && !shape) shape = true, extents();
      else stop("an unknown or repeated key at character " + std::to_string(at_));
      if (!accept(',') && peek() != '}') stop("no ',' at character " + std::to_string(at_));
    }
    if (peek() != '\0') stop("text after its '}'");
    if (!descr || !order || !shape) stop("not all of descr, fortran_order and shape");
    return header_;
  }

 private:
  [[noreturn]] void stop(const std::string& what) const {
    fail_("is not a valid .npy file: its header has " + what);
    throw Error(Code::internal, what);
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    const bool found = peek() == c;
    at_ += found;
    return found;
  }
  void expect(char c) {
    if (!accept(c)) stop(std::string("no '") + c + "' at character " + std::to_string(at_));
  }
  std::string word() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') stop("no text at character " + std::to_string(at_));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) stop("a text without end");
    std::string found = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return found;
  }
  std::string element_type() {
    if (peek() == '[' || peek() == '(') {
      fail_("holds records of several fields: save each field as an array of its own, for example with numpy.savez");
    }
    return word();
  }
  bool boolean() {
    for (const bool value : {true, false}) {
      const std::string name = value ? "True" : "False";
      peek();
      if (text_.compare(at_, name.size(), name) != 0) continue;
      at_ += name.size();
      return value;
    }
    stop("a fortran_order that is neither True nor False");
  }
  void extents() {
    expect('(');
    while (!accept(')')) {
      if (header_.shape.rank() == PLUGRAD_MAX_RANK) fail_("has more than 8 dimensions; at most 8 are supported");
      header_.shape.push_back(number());
      if (!accept(',') && peek() != ')') stop("no ',' in its shape");
    }
  }
  int64_t number() {
    peek();
    const size_t start = at_;
    int64_t value = 0;
    bool overflow = false;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      overflow |= __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value);
    }
    if (at_ == start || overflow) stop("an extent that is not a whole number below 2^63");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote extents with an L
    return value;
  }

  std::string text_;
  const Fail& fail_;
  Header header_;
  size_t at_ = 0;
};

std::string advice(const std::string& type) {
  if (type == "u2" || type == "u4") return "unsigned integers of 16 or 32 bits: save array.astype('int64')";
  if (type == "u8") return "unsigned integers of 64 bits: save array.astype('int64') or array.astype('float64')";
  if (type.starts_with('c')) return "complex numbers of type clongdouble: save array.astype('complex128')";
  if (type.starts_with('O')) return "Python objects, which are not read because that could run any program: save numbers";
  if (type == "f16" || type == "f12") return "numbers of type longdouble: save array.astype('float64')";
  return "elements of type '" + type +
         "', expected bool, int8 .. int64, uint8 or float16 .. float64: save array.astype(...)";
}

DType dtype_of(const std::string& descr, const Fail& fail) {
  const std::string type = descr.size() > 1 && std::strchr("<>|=", descr[0]) ? descr.substr(1) : descr;
  for (const DTypeNames& each : kDTypeNames)
    if (each.array && type == each.array) return each.dtype;
  std::string shown = type.substr(0, 40);
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  fail("holds " + advice(shown));
  return DType::f32;
}

void swap_bytes(uint8_t* bytes, size_t count, size_t size) {
  for (uint8_t* element = bytes; element < bytes + count * size; element += size) std::reverse(element, element + size);
}

// Returns the number of bytes of the elements.
size_t bytes_of(const Header& header, DType dtype, const Fail& fail) {
  int64_t bytes = item_size(dtype);
  bool overflow = false;
  // Strides are products of extents, and must not overflow even if an extent is 0: the product below skips extents of 0.
  for (const int64_t extent : header.shape) overflow |= extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes);
  if (overflow) fail("claims an array of shape " + header.shape.text() + ", which takes more than 2^63 bytes");
  return static_cast<size_t>(header.shape.count() * item_size(dtype));
}

// Returns the offset and the length of the header's text, in bytes.
std::pair<size_t, size_t> header_range(const std::vector<uint8_t>& file, const Fail& fail) {
  if (file.size() < 10 || std::memcmp(file.data(), kMagic, kMagicBytes) != 0) {
    fail("is not a .npy file: it does not begin with \\x93NUMPY");
  }
  const int version = file[kMagicBytes];
  if (version < 1 || version > 3)
    fail("has version " + std::to_string(version) + " of the .npy format; 1, 2 and 3 can be read");
  const size_t length_bytes = version == 1 ? 2 : 4, start = kMagicBytes + 2 + length_bytes;
  if (file.size() < start) fail("is cut short: it ends inside its header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= static_cast<size_t>(file[kMagicBytes + 2 + i]) << (8 * i);
  if (length > file.size() - start) {
    fail("is cut short: its header should have " + std::to_string(length) + " bytes, but " +
         std::to_string(file.size() - start) + " are left");
  }
  return {start, length};
}

// Makes a row-major tensor from elements in Fortran order, in which the first axis is the innermost.
Tensor from_fortran(const uint8_t* elements, DType dtype, const Shape& shape, Device device) {
  Shape reversed = shape, axes;
  std::ranges::reverse(reversed);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) axes.push_back(axis);
  const Tensor stored = Tensor::from_host(elements, static_cast<size_t>(shape.count()), dtype, reversed, device);
  return contiguous(permute(stored, axes)).detach();
}

}  // namespace

Tensor tensor_of_npy(std::vector<uint8_t>& file, const Fail& fail, Device device) {
  const auto [start, length] = header_range(file, fail);
  const Header header = HeaderText(std::string(file.begin() + static_cast<ptrdiff_t>(start),
                                               file.begin() + static_cast<ptrdiff_t>(start + length)),
                                   fail)
                            .parse();
  const DType dtype = dtype_of(header.descr, fail);
  const size_t bytes = bytes_of(header, dtype, fail), left = file.size() - start - length;
  if (bytes != left) {
    fail((bytes > left ? "is cut short: its array of shape " : "has bytes after its array of shape ") + header.shape.text() +
         " takes " + std::to_string(bytes) + " bytes, but " + std::to_string(left) + " follow its header");
  }
  uint8_t* const elements = file.data() + start + length;
  const size_t count = static_cast<size_t>(header.shape.count());
  if (header.descr[0] == '>') {
    const size_t parts = is_complex(dtype) ? 2 : 1;
    swap_bytes(elements, count * parts, static_cast<size_t>(item_size(dtype)) / parts);
  }
  if (dtype == DType::boolean && std::any_of(elements, elements + count, [](uint8_t byte) { return byte > 1; })) {
    fail("is not a valid .npy file: it holds a bool that is neither 0 nor 1");
  }
  if (header.fortran && header.shape.rank() > 1) return from_fortran(elements, dtype, header.shape, device);
  return Tensor::from_host(elements, count, dtype, header.shape, device);
}

std::vector<uint8_t> npy_of_tensor(const Tensor& tensor, const std::string& path, const std::string& name) {
  const std::string who = "[" + path + "] " + (name.empty() ? "the tensor" : "tensor " + name);
  if (!tensor.defined()) throw Error(Code::invalid, who + " is undefined");
  const char* const type = names_of(tensor.dtype()).array;
  if (!type) {
    throw Error(Code::invalid, who + " is " + dtype_name(tensor.dtype()) +
                                   ", which NumPy does not have: convert it to f32, or save it as safetensors");
  }
  const bool small = item_size(tensor.dtype()) == 1;
  std::string text = std::string("{'descr': '") + (small ? '|' : '<') + type +
                     "', 'fortran_order': False, 'shape': " + tensor.shape().text() + ", }";
  constexpr size_t kStart = 10, kAlignment = 64;
  text.append((kAlignment - (kStart + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string head(kMagic, kMagicBytes);
  head += {'\1', '\0', static_cast<char>(text.size()), static_cast<char>(text.size() >> 8)};
  head += text;
  std::vector<uint8_t> file(head.begin(), head.end());
  file.resize(head.size() + static_cast<size_t>(tensor.count() * item_size(tensor.dtype())));
  tensor.copy_to_host(file.data() + head.size());
  return file;
}

Tensor read_npy(const std::string& path, Device device) {
  const OpenedFile file(path);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes.data(), bytes.size());
  return tensor_of_npy(bytes, [&](const std::string& what) { file.fail(what); }, device);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::vector<uint8_t> bytes = npy_of_tensor(tensor, path, "");
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace plugrad::io
