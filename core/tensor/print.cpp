// Prints as NumPy does: https://numpy.org/doc/stable/reference/generated/numpy.set_printoptions.html.
#include <core/runtime/dispatch/stand_ins.hpp>
#include <core/runtime/fork.hpp>
#include <core/runtime/memory/transfer.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/tensor/print.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

namespace plugrad {
namespace {
ForkMutex mutex;  // guards the options
PrintOptions current;

// --- The part to print: the whole tensor, or some elements at each end of every long axis.

bool is_cut(const plugrad_view& v, int axis, const PrintOptions& options) {
  return v.count > options.threshold && v.shape[axis] > 2 * options.edge_items;
}

// Narrows one axis of a view to [start, start + extent).
void narrow(plugrad_view& v, int axis, int64_t start, int64_t extent) {
  v.offset += static_cast<uint64_t>(start * v.strides[axis] * static_cast<int64_t>(dtype_size(v.dtype)));
  v.shape[axis] = extent;
}

// Copies the printed corners: a corner for each choice of head or tail of every cut axis.
Tensor shown_part(const Tensor& x, const PrintOptions& options) {
  const int64_t edge = options.edge_items;
  const plugrad_view& whole = view_of(x);
  Shape shape = shape_of(whole);
  std::vector<int> cut;
  for (int axis = 0; axis < whole.rank; ++axis)
    if (is_cut(whole, axis, options)) shape[static_cast<size_t>(axis)] = 2 * edge, cut.push_back(axis);
  if (cut.empty()) return x;
  DeviceState& device = device_of(x);
  const uint64_t alignment = device.info.alignment;
  Tensor part = empty(Op::COPY, device, shape, whole.dtype);
  for (unsigned corner = 0; corner < 1u << cut.size(); ++corner) {
    plugrad_view from = whole, to = view_of(part);
    for (size_t i = 0; i < cut.size(); ++i) {
      const bool tail = corner >> i & 1;
      narrow(from, cut[i], tail ? whole.shape[cut[i]] - edge : 0, edge);
      narrow(to, cut[i], tail ? edge : 0, edge);
    }
    set_layout(from, alignment);
    set_layout(to, alignment);
    run(Op::COPY, {operand(part, to)}, {operand(x, from)});
  }
  return part;
}

// --- Numbers.

template <class T> std::vector<T> read(const Tensor& x) {
  std::vector<T> raw(static_cast<size_t>(x.count()));
  x.copy_to_host(raw.data());
  return raw;
}

// The shortest decimal that reads back as the same number: sign, digits d.ddd without trailing zeros, and exponent.
struct Decimal {
  bool negative;
  std::string digits;  // the first digit is before the point
  int exponent;
};

template <class T> Decimal shortest(T value) {
  char text[64];
  const std::string all(text, std::to_chars(text, text + sizeof text, std::abs(value), std::chars_format::scientific).ptr);
  const size_t e = all.find('e');
  std::string digits = all.substr(0, 1);
  if (e > 2) digits += all.substr(2, e - 2);
  return {std::signbit(value), digits, std::stoi(all.substr(e + 1))};
}

// With `precision` digits after the point; removes zeros at the end, but not the point.
std::string rounded(std::chars_format format, double value, int precision) {
  char text[512];
  std::string all(text, std::to_chars(text, text + sizeof text, value, format, precision).ptr);
  if (!precision) all.insert(std::min(all.find('e'), all.size()), ".");
  const size_t end = std::min(all.find('e'), all.size());
  return all.substr(0, all.find_last_not_of('0', end - 1) + 1) + all.substr(end);
}

std::string positional(const Decimal& d) {
  const int before = d.exponent + 1;
  std::string digits = d.digits;
  if (before <= 0) digits.insert(0, static_cast<size_t>(1 - before), '0');
  const size_t point = static_cast<size_t>(std::max(before, 1));
  if (digits.size() < point) digits.append(point - digits.size(), '0');
  digits.insert(point, ".");
  return (d.negative ? "-" : "") + digits;
}

// "1.25e+07", with at least `after` digits after the point and `exponent_digits` after the e.
std::string scientific(const Decimal& d, size_t after, size_t exponent_digits) {
  std::string mantissa = d.digits.substr(0, 1) + "." + d.digits.substr(1), exponent = std::to_string(std::abs(d.exponent));
  mantissa.append(after + 2 - std::min(mantissa.size(), after + 2), '0');
  exponent.insert(0, exponent_digits - std::min(exponent.size(), exponent_digits), '0');
  return (d.negative ? "-" : "") + mantissa + (d.exponent < 0 ? "e-" : "e+") + exponent;
}

// At most `precision` digits after the point.
template <class T> std::string short_positional(T value, int precision) {
  const std::string all = positional(shortest(value));
  if (all.size() - all.find('.') - 1 <= static_cast<size_t>(precision)) return all;
  return rounded(std::chars_format::fixed, static_cast<double>(value), precision);
}
template <class T> std::string short_scientific(T value, size_t after, size_t exponent_digits, int precision) {
  Decimal d = shortest(value);
  if (d.digits.size() > static_cast<size_t>(precision) + 1) {
    const std::string all = rounded(std::chars_format::scientific, std::abs(static_cast<double>(value)), precision);
    const size_t e = all.find('e');
    d = {d.negative, all.substr(0, 1) + all.substr(2, e - 2), std::stoi(all.substr(e + 1))};
  } else if (value != 0 && d.digits.size() < after + 1) {  // further digits are the number's own digits, not zeros
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, std::abs(static_cast<double>(value)),
                                   std::chars_format::scientific, static_cast<int>(after));
    const std::string all(text, end.ptr);
    d = {d.negative, all.substr(0, 1) + all.substr(2, after), std::stoi(all.substr(all.find('e') + 1))};
  }
  return scientific(d, after, exponent_digits);
}

template <class T> std::string special(T value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

// Returns a scalar's text, with all digits.
template <class T> std::string scalar_text(T value) {
  if (!std::isfinite(value)) return special(value);
  const Decimal d = shortest(value);
  constexpr double kHigh = sizeof(T) == 4 ? 1e6 : 1e16;
  if (value == 0 || (std::abs(static_cast<double>(value)) >= 1e-4 && std::abs(static_cast<double>(value)) < kHigh)) {
    const std::string all = positional(d);
    return all.back() == '.' ? all + "0" : all;
  }
  std::string all = scientific(d, 0, 2);
  if (const size_t bare = all.find(".e"); bare != std::string::npos) all.erase(bare, 1);
  return all;
}

template <class T> bool wants_exponent(const std::vector<T>& values, const PrintOptions& options) {
  if (options.scientific) return *options.scientific;
  constexpr T kHigh = sizeof(T) == 4 ? T(1e6) : T(1e8);
  T high = 0, low = INFINITY;
  for (T v : values)
    if (std::isfinite(v) && v != 0) high = std::max(high, std::abs(v)), low = std::min(low, std::abs(v));
  return high >= kHigh || low < T(1e-4) || (high > 0 && high / low > T(1000));
}

// All texts have the longest text's numbers of digits after the point and in the exponent.
template <class T> std::vector<std::string> scientific_texts(const std::vector<T>& values, int precision) {
  size_t after = 0, exponent_digits = 0;
  for (T v : values) {
    if (!std::isfinite(v)) continue;
    const std::string bare = short_scientific(v, 0, 2, precision);
    const size_t point = bare.find('.'), e = bare.find('e');
    after = std::max(after, e - point - 1);
    exponent_digits = std::max(exponent_digits, bare.size() - e - 2);
  }
  std::vector<std::string> texts;
  for (T v : values) texts.push_back(std::isfinite(v) ? short_scientific(v, after, exponent_digits, precision) : special(v));
  return texts;
}

// Pads all texts to one width with the points aligned.
std::vector<std::string> align(std::vector<std::string> texts) {
  size_t after = 0, width = 0;
  for (const std::string& t : texts) after = std::max(after, t.size() - std::min(t.find('.'), t.size()));
  for (std::string& t : texts) {
    if (const size_t point = t.find('.'); point != std::string::npos) t.append(after - (t.size() - point), ' ');
    width = std::max(width, t.size());
  }
  for (std::string& t : texts) t.insert(0, width - t.size(), ' ');
  return texts;
}

template <class T>
std::vector<std::string> floating_texts(const std::vector<T>& values, bool scalar, const PrintOptions& options) {
  if (scalar) return {scalar_text(values.front())};
  if (wants_exponent(values, options)) return align(scientific_texts(values, options.precision));
  std::vector<std::string> texts;
  for (T v : values) texts.push_back(std::isfinite(v) ? short_positional(v, options.precision) : special(v));
  return align(std::move(texts));
}

// Moves blanks from the end of a text behind the j.
std::string imaginary_text(const std::string& part) {
  const size_t end = part.find_last_not_of(' ') + 1;
  return part.substr(0, end) + "j" + part.substr(end);
}
template <class T> std::vector<std::string> complex_texts(const Tensor& x, const PrintOptions& options) {
  const bool scalar = !x.rank();
  std::vector<T> re, im;
  for (const std::complex<T>& each : read<std::complex<T>>(x))
    re.push_back(each.real()), im.push_back(std::abs(each.imag()));
  std::vector<std::string> texts = floating_texts(re, scalar, options);
  std::vector<std::string> others = floating_texts(im, scalar, options);
  size_t i = 0;
  for (const std::complex<T>& each : read<std::complex<T>>(x)) {
    std::string& text = texts[i];
    std::string& other = others[i++];
    other.erase(0, other.find_first_not_of(' '));
    text += (std::signbit(each.imag()) ? "-" : "+") + imaginary_text(other);
  }
  return texts;
}

std::vector<std::string> texts_of(const Tensor& x, const PrintOptions& options) {
  const bool scalar = !x.rank();
  if (x.dtype() == DType::c64) return complex_texts<float>(x, options);
  if (x.dtype() == DType::c128) return complex_texts<double>(x, options);
  std::vector<std::string> texts;
  with_element_type(view_of(x).dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      for (uint8_t v : read<uint8_t>(x)) texts.push_back(v ? scalar ? "True" : " True" : "False");
    } else if constexpr (std::is_integral_v<T>) {
      for (T v : read<T>(x)) texts.push_back(std::to_string(v));
    } else {
      const std::vector<T> values = read<T>(x);
      texts = floating_texts(std::vector<ComputeType<T>>(values.begin(), values.end()), scalar, options);
    }
  });
  return is_floating(x.dtype()) ? texts : align(std::move(texts));
}

// --- Rows.

// Puts brackets, blanks and line breaks around the texts of the elements.
class Rows {
 public:
  Rows(const plugrad_view& whole, const Shape& shown, const std::vector<std::string>& texts, const PrintOptions& options)
      : whole_(whole), shape_(shown), texts_(texts), options_(options) {}

  std::string text(int axis = 0) {
    if (axis == shape_.rank()) return texts_[at_++];
    const std::string indent(static_cast<size_t>(axis) + 1, ' ');
    const std::string inner = axis + 1 == shape_.rank() ? row(axis, indent) : block(axis, indent);
    return "[" + inner.substr(indent.size()) + "]";
  }

 private:
  // The last axis, with as many elements per line as fit.
  std::string row(int axis, const std::string& indent) {
    std::string done, line = indent;
    const size_t width = static_cast<size_t>(options_.line_width);
    const auto extend = [&](const std::string& word) {
      if (line.size() + word.size() + indent.size() > width && line.size() > indent.size()) {
        done += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
        line = indent;
      }
      line += word;
    };
    for (int64_t i = 0, count = shape_[static_cast<size_t>(axis)]; i < count; ++i) {
      if (i) line += ' ';
      if (i == options_.edge_items && is_cut(whole_, axis, options_)) extend("..."), line += ' ';
      extend(text(axis + 1));
    }
    return done + line;
  }

  std::string block(int axis, const std::string& indent) {
    std::string all;
    const std::string between(static_cast<size_t>(shape_.rank() - axis - 1), '\n');
    for (int64_t i = 0, count = shape_[static_cast<size_t>(axis)]; i < count; ++i) {
      if (i) all += between;
      if (i == options_.edge_items && is_cut(whole_, axis, options_)) all += indent + "..." + between;
      all += indent + text(axis + 1);
    }
    return all;
  }

  const plugrad_view& whole_;
  const Shape& shape_;
  const std::vector<std::string>& texts_;
  const PrintOptions& options_;
  size_t at_ = 0;
};
}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "undefined";
  if (!tensor.count()) return out << "[]";
  if (!stand_ins::is_readable(*storage_of(tensor)))
    return out << "one of many examples inside vmap, of shape " << tensor.shape().text();
  const PrintOptions options = print_options();
  const Tensor part = shown_part(tensor, options);
  const std::vector<std::string> texts = texts_of(part, options);
  const Shape shown = part.shape();
  return out << Rows(view_of(tensor), shown, texts, options).text();
}

PrintOptions print_options() {
  const std::lock_guard lock(mutex);
  return current;
}

void set_print_options(const PrintOptions& options) {
  const auto require = [](bool holds, const char* expected) {
    if (!holds) throw Error(Code::invalid, std::string("[set_print_options] expected ") + expected);
  };
  require(options.precision >= 0 && options.precision <= 100, "a precision from 0 to 100");
  require(options.threshold >= 0 && options.edge_items >= 1 && options.edge_items <= 1000000,
          "a threshold of 0 or more, and 1 to 1,000,000 items at each edge");
  require(options.line_width >= 1, "a line width of 1 or more");
  const std::lock_guard lock(mutex);
  current = options;
}

}  // namespace plugrad
