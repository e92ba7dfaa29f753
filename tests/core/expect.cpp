#include <tests/core/expect.hpp>

#include <cmath>
#include <cstring>
#include <iomanip>
#include <numeric>

namespace plugrad::test {

Thrown thrown(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const Error& error) {
    return {true, error.code(), error.what()};
  } catch (const std::exception& error) {
    return {true, {}, error.what()};
  }
}

::testing::AssertionResult throws(Code code, const std::vector<std::string>& parts, const std::function<void()>& f) {
  const Thrown t = thrown(f);
  if (!t.any) return ::testing::AssertionFailure() << "nothing was thrown";
  if (t.code != code) return ::testing::AssertionFailure() << "code " << static_cast<int>(t.code) << " with: " << t.message;
  for (const std::string& part : parts)
    if (t.message.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << t.message;
  return ::testing::AssertionSuccess();
}

namespace {
template <class T> std::vector<double> widened(const Tensor& x) {
  const std::vector<T> raw = x.to_vector<T>();
  return {raw.begin(), raw.end()};
}
}  // namespace

std::vector<double> elements(const Tensor& x) {
  std::vector<double> values;
  with_element_type(static_cast<uint8_t>(x.dtype()), [&]<class T>(T) { values = widened<HostType<T>>(x); });
  return values;
}

namespace {
bool near(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
  return std::abs(actual - expected) <= tolerance * (1 + std::abs(expected));
}
template <class Same>
::testing::AssertionResult compare(const std::vector<double>& actual, const std::vector<double>& expected, Same same) {
  if (actual.size() != expected.size())
    return ::testing::AssertionFailure() << actual.size() << " elements, " << expected.size() << " expected";
  for (size_t i = 0; i < actual.size(); ++i)
    if (!same(actual[i], expected[i]))
      return ::testing::AssertionFailure()
             << std::setprecision(17) << "element " << i << " is " << actual[i] << ", " << expected[i] << " expected";
  return ::testing::AssertionSuccess();
}
}  // namespace

::testing::AssertionResult close(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  return compare(actual, expected, [&](double a, double b) { return near(a, b, tolerance); });
}

::testing::AssertionResult close(const Tensor& actual, const Shape& shape, const std::vector<double>& expected,
                                 double tolerance) {
  if (!actual.defined()) return ::testing::AssertionFailure() << "undefined";
  if (actual.shape() != shape)
    return ::testing::AssertionFailure() << "shape " << actual.shape() << ", " << shape << " expected";
  return close(elements(actual), expected, tolerance);
}

::testing::AssertionResult same_bits(const std::vector<double>& actual, const std::vector<double>& expected) {
  return compare(actual, expected,
                 [](double a, double b) { return std::isnan(b) ? std::isnan(a) : std::memcmp(&a, &b, sizeof a) == 0; });
}

Tensor f64(const std::vector<double>& values, const Shape& shape) { return Tensor::from(values, shape); }
Tensor f64(const std::vector<double>& values) { return f64(values, {static_cast<int64_t>(values.size())}); }
Tensor i64(const std::vector<int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }
Tensor i64(const std::vector<int64_t>& values) { return i64(values, {static_cast<int64_t>(values.size())}); }

Tensor of(DType dtype, const std::vector<double>& values, const Shape& shape) {
  Tensor made;
  with_element_type(static_cast<uint8_t>(dtype), [&]<class T>(T) {
    std::vector<T> elements;
    for (double value : values) elements.push_back(static_cast<T>(value));
    made = Tensor::from(elements, shape);
  });
  return made;
}

Tensor counting(const Shape& shape, DType dtype) {
  std::vector<double> values(static_cast<size_t>(shape.count()));
  std::iota(values.begin(), values.end(), 0.0);
  return of(dtype, values, shape);
}

std::vector<double> spread(int64_t n, double low, double high, double phase) {
  int64_t step = std::max<int64_t>(static_cast<int64_t>(static_cast<double>(n) * 0.618), 1);
  while (std::gcd(step, n) != 1) ++step;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    const double value = low + (high - low) * (static_cast<double>(i * step % n) + phase) / static_cast<double>(n);
    values.push_back(std::round(value * 1024) / 1024);
  }
  return values;
}

Device other_device() {
  const std::string mine = default_device().name(), backend = mine.substr(0, mine.find(':'));
  for (const std::string& name : {backend + ":1", std::string("reference"), std::string("cpu")})
    if (name + ":0" != mine && has_device(name)) return Device(name);
  return default_device();
}

std::vector<Shape> positions(const Shape& shape) {
  std::vector<Shape> all;
  const int64_t count = shape.count();
  for (int64_t i = 0; i < count; ++i) {
    Shape position = shape;
    int64_t rest = i;
    for (int axis = shape.rank(); axis-- > 0; rest /= shape[static_cast<size_t>(axis)])
      position[static_cast<size_t>(axis)] = rest % shape[static_cast<size_t>(axis)];
    all.push_back(position);
  }
  return all;
}

int64_t offset(const Shape& position, const Shape& shape) {
  int64_t at = 0;
  for (size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + position[i];
  return at;
}

Shape within(const Shape& position, const Shape& shape) {
  Shape inner = shape;
  const size_t added = position.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) inner[i] = shape[i] == 1 ? 0 : position[i + added];
  return inner;
}

}  // namespace plugrad::test
