// The results of a case.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace plugrad::conformance {

// Thread-safe: a case may count on several threads.
class Tally {
 public:
  explicit Tally(size_t lines_kept = 20) : lines_kept_(lines_kept) {}
  // Counts a check. If it is not good, also counts a failure with this line. Returns good.
  bool check(bool good, const std::string& line) {
    const std::scoped_lock lock(mutex_);
    ++cases_;
    if (!good) note(line);
    return good;
  }
  void count(uint64_t cases = 1) {
    const std::scoped_lock lock(mutex_);
    cases_ += cases;
  }
  void fail(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    note(line);
  }
  // Counts problems declined by run, although resolve returned a kernel.
  void decline(uint64_t problems) {
    const std::scoped_lock lock(mutex_);
    declined_ += problems;
  }
  // Adds the results of another tally.
  void absorb(const Tally& other) {
    const std::scoped_lock lock(mutex_);
    cases_ += other.cases_;
    declined_ += other.declined_;
    for (const std::string& line : other.lines_) note(line);
    failures_ += other.failures_ - other.lines_.size();
    skips_.insert(skips_.end(), other.skips_.begin(), other.skips_.end());
  }
  // Records why something is not checked.
  void skip(const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    skips_.push_back(reason);
  }

  // Read these only after all threads have stopped counting.
  uint64_t cases() const { return cases_; }
  uint64_t failures() const { return failures_; }
  uint64_t declined() const { return declined_; }
  const std::vector<std::string>& lines() const { return lines_; }
  const std::vector<std::string>& skips() const { return skips_; }

 private:
  void note(const std::string& line) {
    if (++failures_ <= lines_kept_) lines_.push_back(line);
  }
  std::mutex mutex_;
  size_t lines_kept_;
  uint64_t cases_ = 0, failures_ = 0, declined_ = 0;
  std::vector<std::string> lines_, skips_;
};

}  // namespace plugrad::conformance
