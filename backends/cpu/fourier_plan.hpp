// The numbers of Fourier transforms that no instruction set changes: how a length is cut, and roots of unity.
#pragma once
#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plugrad::cpu {

inline constexpr int kLargestRadix = 31;

// Returns radices whose product is n, in the order of the passes; nothing for 1, and for a length with a prime factor above
// kLargestRadix.
std::vector<int> radices_of(int64_t n);
inline bool is_smooth(int64_t n) { return n == 1 || !radices_of(n).empty(); }

// Returns the smallest length of the form 2^a 3^b 5^c that is at least n, with a at least 4.
int64_t padded_length(int64_t n);

// Returns e^(-2 pi i k / n) for 0 <= k < n, rounded once or twice.
std::complex<double> root_of_unity(int64_t k, int64_t n);

// Returns about how many elements are computed for the transform of columns of a smooth length n, `lanes` at a time.
int64_t column_cost(int64_t n, int64_t columns, int64_t lanes);

// How a length n is cut, for vectors of so many lanes: n is first x second, for columns of the first length and rows of the
// second. The first is 1 if n is 1, a prime, or not smooth.
struct Cut {
  Cut(int64_t n, int64_t lanes);

  bool smooth;
  int64_t first = 1, second;
  int64_t cost;  // of a line that is cut, as column_cost counts
};

// The plans that this process made last, by length. A plan is made from its length.
template <class Plan> class PlanCache {
 public:
  // [any]
  std::shared_ptr<const Plan> get(int64_t n) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < plans_.size(); ++i)
      if (plans_[i].first == n) {
        std::swap(plans_[i], plans_[i / 2]);  // what is used often moves to the front
        return plans_[i / 2].second;
      }
    while (!plans_.empty() && (plans_.size() == kMost || total_length() + n > kMostNumbers)) plans_.pop_back();
    plans_.emplace_back(n, std::make_shared<const Plan>(n));
    return plans_.back().second;
  }

 private:
  static constexpr size_t kMost = 32;
  static constexpr int64_t kMostNumbers = 1 << 21;  // of all lengths; a longer plan is kept alone
  int64_t total_length() const {
    int64_t total = 0;
    for (const auto& [n, plan] : plans_) total += n;
    return total;
  }
  std::mutex mutex_;
  std::vector<std::pair<int64_t, std::shared_ptr<const Plan>>> plans_;
};

}  // namespace plugrad::cpu
