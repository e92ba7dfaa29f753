#include <core/runtime/memory/budget.hpp>

#include <core/runtime/dispatch/op_table.hpp>
#include <core/runtime/memory/blocks.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad {

void Budget::take(uint64_t bytes, uint32_t opcode) {
  uint64_t before = used_.load(std::memory_order_relaxed);
  while (bytes <= most_ && before <= most_ - bytes)
    if (used_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed)) return;
  const std::string op = opcode ? "[" + op_label(opcode) + "] " : "";
  throw Error(Code::out_of_memory, op + "out of the memory of " + owner_ + ": " + std::to_string(bytes) + " bytes wanted, " +
                                       std::to_string(before) + " in use, at most " + std::to_string(most_) +
                                       " by its option memory");
}

void Charge::move_to(Block& block) noexcept {
  if (!budget_) return;
  bytes_ -= block.bytes;
  block.budget = budget_;
}

void leave_budget(Block& block) noexcept {
  if (const std::shared_ptr<Budget> budget = std::exchange(block.budget, nullptr)) budget->give(block.bytes);
}

}  // namespace plugrad
