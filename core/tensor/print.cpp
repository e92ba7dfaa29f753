// As NumPy prints: https://numpy.org/doc/stable/reference/generated/numpy.set_printoptions.html (its defaults).
#include <core/runtime/transfer.hpp>
#include <core/tensor/impl.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

namespace plugrad {
namespace {
constexpr int64_t kThreshold = 1000, kEdge = 3;
constexpr int kPrecision = 8;

// --- What is shown: the tensor itself, or three elements at each end of every long axis.

bool is_cut(const plugrad_view& v, int axis) { return v.count > kThreshold && v.shape[axis] > 2 * kEdge; }

// Narrows one axis of a view to [start, start + extent).
void narrow(plugrad_view& v, int axis, int64_t start, int64_t extent) {
  v.offset += uint64_t(start * v.strides[axis] * int64_t(dtype_size(v.dtype)));
  v.shape[axis] = extent;
}

// Copies the corners that are shown, one for each choice of head or tail of every cut axis.
Tensor shown_part(const Tensor& x) {
  const plugrad_view& whole = view_of(x);
  Shape shape = shape_of(whole);
  std::vector<int> cut;
  for (int axis = 0; axis < whole.rank; ++axis)
    if (is_cut(whole, axis)) shape[size_t(axis)] = 2 * kEdge, cut.push_back(axis);
  if (cut.empty()) return x;
  DeviceState& device = device_of(x);
  const uint64_t alignment = device.info.alignment;
  Tensor part = empty(device, shape, whole.dtype);
  for (unsigned corner = 0; corner < 1u << cut.size(); ++corner) {
    plugrad_view from = whole, to = view_of(part);
    for (size_t i = 0; i < cut.size(); ++i) {
      const bool tail = corner >> i & 1;
      narrow(from, cut[i], tail ? whole.shape[cut[i]] - kEdge : 0, kEdge);
      narrow(to, cut[i], tail ? kEdge : 0, kEdge);
    }
    set_layout(from, alignment);
    set_layout(to, alignment);
    run<1, 1>(device, Op::COPY, whole.dtype, {&to, &from}, {storage_of(part), storage_of(x)});
  }
  return part;
}

// --- Numbers.

std::vector<double> elements(const Tensor& x) {
  std::vector<double> out(size_t(x.count()));
  const auto convert = [&]<class T>(T) {
    std::vector<T> raw(out.size());
    x.copy_to_host(raw.data());
    std::ranges::copy(raw, out.begin());
  };
  if (x.dtype() == DType::f32) convert(float{});
  else convert(double{});
  return out;
}

std::string special(double value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

// The shortest digits that read back as the same number of its own type, at most 8 after the point, trailing zeros cut.
std::string fixed(double value, bool single) {
  char text[512];
  const auto end = single ? std::to_chars(text, text + sizeof text, float(value), std::chars_format::fixed).ptr
                          : std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  std::string shortest(text, end);
  const size_t point = shortest.find('.');
  if (point == std::string::npos) return shortest + ".";
  if (shortest.size() - point - 1 <= size_t(kPrecision)) return shortest;
  std::snprintf(text, sizeof text, "%.*f", kPrecision, value);
  std::string rounded = text;
  rounded.erase(rounded.find_last_not_of('0') + 1);
  return rounded;
}

std::string scientific(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*e", digits, value);
  std::string all = text;
  if (digits == 0) all.insert(all.find('e'), ".");
  return all;
}

int scientific_digits(double value, bool single) {
  char text[64];
  const auto end = single ? std::to_chars(text, text + sizeof text, float(value), std::chars_format::scientific).ptr
                          : std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  const std::string shortest(text, end);
  const size_t point = shortest.find('.');
  return point == std::string::npos ? 0 : std::min<int>(kPrecision, int(shortest.find('e') - point - 1));
}

bool wants_exponent(const std::vector<double>& values) {
  double high = 0, low = INFINITY;
  for (double v : values)
    if (std::isfinite(v) && v != 0) high = std::max(high, std::abs(v)), low = std::min(low, std::abs(v));
  return high >= 1e8 || low < 1e-4 || (high > 0 && high / low > 1000.0);
}

// Aligned at the point: digits before it to the right, those after it to the left.
std::vector<std::string> align(std::vector<std::string> texts) {
  size_t before = 0, after = 0;
  const auto point_of = [](const std::string& t) { return std::min(t.find('.'), t.size()); };
  for (const std::string& t : texts) {
    const size_t point = point_of(t);
    if (point == t.size()) continue;
    before = std::max(before, point);
    after = std::max(after, t.size() - point);
  }
  size_t width = before + after;
  for (const std::string& t : texts) width = std::max(width, t.size());
  for (std::string& t : texts) {
    const size_t point = point_of(t);
    if (point != t.size()) t.append(after - (t.size() - point), ' ');
    t.insert(0, width - t.size(), ' ');
  }
  return texts;
}

std::vector<std::string> floating_texts(const Tensor& x) {
  const std::vector<double> values = elements(x);
  const bool single = x.dtype() == DType::f32, exponent = wants_exponent(values);
  int digits = 0;
  for (double v : values)
    if (exponent && std::isfinite(v)) digits = std::max(digits, scientific_digits(v, single));
  std::vector<std::string> texts;
  for (double v : values) texts.push_back(!std::isfinite(v) ? special(v) : exponent ? scientific(v, digits) : fixed(v, single));
  return align(std::move(texts));
}

std::vector<std::string> integer_texts(const Tensor& x) {
  std::vector<std::string> texts;
  if (x.dtype() == DType::boolean)
    for (uint8_t v : x.to_vector<uint8_t>()) texts.push_back(v ? "True" : "False");
  else
    for (int64_t v : x.to_vector<int64_t>()) texts.push_back(std::to_string(v));
  size_t width = 0;
  for (const std::string& t : texts) width = std::max(width, t.size());
  for (std::string& t : texts) t.insert(0, width - t.size(), ' ');
  return texts;
}

// --- Rows.

struct Layout {
  const plugrad_view& whole;
  const Shape shape;  // of what is shown
  const std::vector<std::string>& texts;
};

void print_axis(std::ostream& out, const Layout& layout, int axis, size_t& at) {
  if (axis == layout.shape.rank()) {
    out << layout.texts[at++];
    return;
  }
  const bool last = axis + 1 == layout.shape.rank();
  const std::string between = last ? " " : std::string(size_t(layout.shape.rank() - axis - 1), '\n') + std::string(size_t(axis) + 1, ' ');
  out << '[';
  for (int64_t i = 0; i < layout.shape[size_t(axis)]; ++i) {
    if (i) out << between;
    if (i == kEdge && is_cut(layout.whole, axis)) out << "..." << between;
    print_axis(out, layout, axis + 1, at);
  }
  out << ']';
}
}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "undefined";
  if (!tensor.count()) return out << "[] " << tensor.shape();
  const Tensor part = shown_part(tensor);
  const std::vector<std::string> texts = is_floating(tensor.dtype()) ? floating_texts(part) : integer_texts(part);
  size_t at = 0;
  print_axis(out, {view_of(tensor), part.shape(), texts}, 0, at);
  return out;
}

}  // namespace plugrad
