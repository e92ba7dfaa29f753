// Bounds of the device memory that some work may hold, such as the calls of a model.
#pragma once
#include <core/runtime/local.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace plugrad {

struct Block;

// Counts blocks above 4 KB, from their allocation inside a BudgetScope to their release. Several threads may use it at once.
class Budget {
 public:
  // owner: for messages.
  Budget(std::string owner, uint64_t most) : owner_(std::move(owner)), most_(most) {}
  uint64_t most() const { return most_; }
  // Throws Error (out_of_memory) beyond the bound. opcode: of the op that allocates, or 0.
  void take(uint64_t bytes, uint32_t opcode);
  void give(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::string owner_;
  const uint64_t most_;
  std::atomic<uint64_t> used_{0};
};

// While it lives, this thread's allocations count for the budget; null: for none.
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<Budget> budget)
      : budget_(std::move(budget)), outer_(std::exchange(local().budget, this)) {}
  ~BudgetScope() { local().budget = outer_; }
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;
  // Whether an allocation was wanted that no release makes possible.
  bool is_hopeless() const { return is_hopeless_; }

 private:
  friend class Charge;
  const std::shared_ptr<Budget> budget_;
  BudgetScope* const outer_;
  bool is_hopeless_ = false;
};

// Bytes taken from the thread's budget, if it has one. Ends with them, unless a block takes them over.
class Charge {
 public:
  Charge(uint64_t bytes, uint32_t opcode) : budget_(local().budget ? local().budget->budget_ : nullptr), bytes_(bytes) {
    if (!budget_) return;
    if (bytes > budget_->most()) local().budget->is_hopeless_ = true;
    budget_->take(bytes, opcode);
  }
  ~Charge() {
    if (budget_) budget_->give(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  // From now on the bytes of the block, at most all of them, are the block's.
  void move_to(Block& block) noexcept;

 private:
  const std::shared_ptr<Budget> budget_;
  uint64_t bytes_;
};

// From now on the block counts for no budget.
void leave_budget(Block& block) noexcept;

}  // namespace plugrad
