// Lines with ties and special values, and their order by plain loops.
#pragma once
#include <tests/core/expect.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace plugrad::test {

// n values of a dtype, with many ties; in floating dtypes also NaN, infinities and -0.
inline std::vector<double> tied_values(DType dtype, int64_t n, uint32_t seed) {
  std::mt19937 engine(seed);
  const auto below = [&](uint32_t end) { return static_cast<double>(engine() % end); };
  std::vector<double> all;
  for (int64_t i = 0; i < n; ++i) {
    if (dtype == DType::boolean) all.push_back(below(2));
    else if (dtype == DType::u8) all.push_back(below(7) * 42);
    else if (is_integer(dtype)) all.push_back(below(9) - 4);
    else if (const double kind = below(12); kind == 0) all.push_back(std::nan(""));
    else if (kind == 1) all.push_back(below(2) ? HUGE_VAL : -HUGE_VAL);
    else all.push_back(kind == 2 ? -0.0 : below(9) / 2 - 2);
  }
  return all;
}

// Returns whether y, which follows x, must come before x.
inline bool must_swap(double x, double y, bool descending) {
  if (descending) return std::isnan(y) ? !std::isnan(x) : y > x;
  return std::isnan(x) ? !std::isnan(y) : y < x;
}
// Sorts by exchanging adjacent elements, which is stable.
inline std::vector<int64_t> order_of(const std::vector<double>& line, bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t end = order.size(); end > 1; --end)
    for (size_t i = 1; i < end; ++i)
      if (must_swap(line[static_cast<size_t>(order[i - 1])], line[static_cast<size_t>(order[i])], descending))
        std::swap(order[i - 1], order[i]);
  return order;
}

// Calls visit(line, offsets) with the elements along an axis and their row-major offsets, for each line.
template <class Visit> void for_each_line(const std::vector<double>& values, const Shape& shape, int axis, Visit visit) {
  Shape outer = shape;
  outer[static_cast<size_t>(axis)] = 1;
  for (Shape at : positions(outer)) {
    std::vector<double> line;
    std::vector<size_t> offsets;
    for (int64_t i = 0; i < shape[static_cast<size_t>(axis)]; ++i) {
      at[static_cast<size_t>(axis)] = i;
      offsets.push_back(static_cast<size_t>(offset(at, shape)));
      line.push_back(values[offsets.back()]);
    }
    visit(line, offsets);
  }
}

// The indices that sort each line.
inline std::vector<double> orders(const std::vector<double>& values, const Shape& shape, int axis, bool descending) {
  std::vector<double> all(values.size());
  for_each_line(values, shape, axis, [&](const std::vector<double>& line, const std::vector<size_t>& offsets) {
    const std::vector<int64_t> order = order_of(line, descending);
    for (size_t i = 0; i < order.size(); ++i) all[offsets[i]] = static_cast<double>(order[i]);
  });
  return all;
}

}  // namespace plugrad::test
