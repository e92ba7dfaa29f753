#include <backends/cpu/fourier_plan.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace plugrad::cpu {
namespace {
// Divides n by `radix` as often as possible.
void take(int64_t& n, int radix, std::vector<int>& radices) {
  for (; n % radix == 0; n /= radix) radices.push_back(radix);
}
int64_t padded(int64_t n, int64_t lanes) { return (n + lanes - 1) / lanes * lanes; }
}  // namespace

std::vector<int> radices_of(int64_t n) {
  std::vector<int> radices;
  take(n, 8, radices);
  take(n, 4, radices);
  take(n, 2, radices);
  // 8 x 2 costs more than 4 x 4.
  if (radices.size() > 1 && radices.back() == 2 && radices[radices.size() - 2] == 8)
    radices[radices.size() - 2] = radices.back() = 4;
  for (int radix = 3; radix <= kLargestRadix; radix += 2) take(n, radix, radices);
  if (n != 1) radices.clear();
  return radices;
}

int64_t padded_length(int64_t n) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t fives = 1; fives < 2 * n && fives <= 625; fives *= 5)
    for (int64_t threes = fives; threes < 2 * n && threes <= fives * 729; threes *= 3) {
      int64_t length = threes * 16;
      while (length < n) length *= 2;
      best = std::min(best, length);
    }
  return best;
}

std::complex<double> root_of_unity(int64_t k, int64_t n) {
  // The nearest quarter turn is exact; what remains is at most an eighth.
  const int64_t quarters = (8 * k / n + 1) / 2;
  const double rest = std::numbers::pi / 2 * static_cast<double>(4 * k - quarters * n) / static_cast<double>(n);
  const double cosine = std::cos(rest), sine = std::sin(rest);
  switch (quarters % 4) {
    case 0: return {cosine, -sine};
    case 1: return {-sine, -cosine};
    case 2: return {-cosine, sine};
    default: return {sine, cosine};
  }
}

int64_t column_cost(int64_t n, int64_t columns, int64_t lanes) {
  return padded(columns, lanes) * n * (2 + static_cast<int64_t>(radices_of(n).size()));
}

Cut::Cut(int64_t n, int64_t lanes) : smooth(is_smooth(n)), second(n), cost(std::numeric_limits<int64_t>::max()) {
  if (!smooth) return;
  for (int64_t each = 2; each * each <= n; ++each) {
    if (n % each) continue;
    for (const int64_t columns : {each, n / each}) {
      const int64_t rows = n / columns;
      const int64_t sum =
          column_cost(columns, rows, lanes) + column_cost(rows, columns, lanes) + std::max(columns, rows) * lanes;
      if (sum >= cost) continue;
      cost = sum;
      first = columns;
      second = rows;
    }
  }
}

}  // namespace plugrad::cpu
