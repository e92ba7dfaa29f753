// Runs the calls of a plan: a flat list, with its temporary memory placed in one block beforehand.
#pragma once
#include <core/steps/digest.hpp>
#include <core/steps/operands.hpp>
#include <core/steps/plan.hpp>
#include <core/steps/step_list.hpp>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::steps {

// The block for temporary memory. Steps that never run at the same time share an arena of the largest step's size.
struct Arena {
  Ref<Storage> storage;  // null until a step needs it
  uint64_t wanted = 0;
  // The number of times that steps may still ask the device for memory for a row of gradients: the program may hold a part
  // of each row.
  int rows = 4;
};

class Runner {
 public:
  Runner(Plan plan, std::shared_ptr<Arena> arena);
  Runner(const Runner&) = delete;

  const Plan& plan() const { return plan_; }
  const Bound& where(uint32_t memory) const { return operands_.where(memory); }

  // As Operands::bind.
  void bind(uint32_t memory, Storage& storage, uint64_t base) {
    if (!operands_.bind(memory, storage, base)) return;
    for (StepList& each : lists_) each.note_memory(memory);
  }
  // From now on the temporary memory of a room starts at this storage: either the first of the room's own memories, or
  // separate memory.
  void bind_room(size_t room, Storage& storage);

  // Runs all calls. Throws Error if a call fails, or if this thread's calls are cancelled; the results of the calls before
  // it stay written.
  void run();
  // As run(); returns a digest of the results of each call of the trace, or 0 for a call that does not run each time.
  // Fusions run twice, once call by call; instead of the host's work, its results are given.
  std::vector<uint64_t> run_with_digests(const HostResults& given);

  // Draws random numbers as a run of the function would.
  void draw();
  // After a failed run: gives back the random numbers of unreached calls.
  void take_back_draws();
  // Returns whether the last, failed run ran no call of the part.
  bool missed(const RecordedPart& part) const;
  // Advances a part, and calls its ops for their numbers if these change. Returns false if the part now calls different ops;
  // the part is then unchanged.
  bool advance(size_t part);
  // Sets the step's numbers, in the order of their sources.
  void set_numbers(const std::vector<double>& numbers);

  // Lists the fusions, and why calls run alone.
  std::string text() const;

 private:
  // An item of the plan, or a call of the plan by itself.
  struct Running {
    const plugrad_kernel* kernel;
    plugrad_op op;
    uint32_t first;       // of its operands
    uint32_t call;        // of the trace; of a fusion, its first call
    uint32_t overwrites;  // results that fill their memory, as a bit set
    uint32_t fusion = kNever;
    observe::HostCall* host = nullptr;  // instead of the kernel
  };
  static size_t count_operands(const Plan& plan);
  void make_all();
  Running make(const Call& call, uint32_t at);
  void connect(Running& one, const Call& call);
  void make_forms();
  void keep_form(const Form& form);
  void bind_constants();
  void bind_captured();
  bool renumber(const RecordedPart& part);
  bool is_in_fusion(uint32_t call) const;
  void set_immediate(uint32_t call, uint32_t operand, uint64_t bits);

  void provide_arena();
  // Both return false if the items have to run singly.
  bool run_list(StepList& list);
  bool run_batch(const Listed::Batch& batch);
  void run_in_order();
  void run_items(uint32_t first, uint32_t last);
  void run_each(uint32_t first, uint32_t last);
  void end_if_cancelled(uint32_t done);
  void note_item(uint32_t item) {
    for (StepList& each : lists_) each.note_item(item);
  }
  void run_one(Running& one);
  void run_host(Running& one);
  void run_observed(Running& one);
  plugrad_status start(Running& one);
  void settle(Running& one, plugrad_status status);
  void run_singly(uint32_t fusion);
  Ref<Storage> bind_inner(uint32_t fusion);
  void rehearse_singly(uint32_t fusion, std::vector<uint64_t>& digests);
  void add_digests(const Running& one, std::vector<uint64_t>& digests) const;
  [[noreturn]] void throw_failed(const Running& one, plugrad_status status);

  const Call& call_of(const Running& one) const {
    return one.fusion == kNever ? plan_.trace.calls[one.call] : plan_.fused.fusions[one.fusion].call.call;
  }

  Plan plan_;  // only numbers and attributes of calls change: see advance
  Operands operands_;
  std::vector<Running> once_, items_;
  std::vector<Running> makers_;               // by form
  std::vector<std::vector<Running>> singly_;  // by fusion: its calls, to run singly if the kernel declines
  std::vector<uint32_t> item_of_call_;        // kNever if it does not run each time
  std::vector<uint32_t> operands_of_call_;    // the first operand; kNever if the call never runs
  std::map<std::pair<uint32_t, uint32_t>, plugrad_view*> numbers_;  // by call and operand: immediates of fusions
  std::vector<uint32_t> draws_;                                     // calls that draw random numbers
  uint64_t drawn_ = 0;                                              // the generator's offset before the last draw()
  uint32_t reached_ = 0;                                            // the first item that the last run did not run
  std::shared_ptr<Arena> arena_;
  Bound arena_bound_;
  std::vector<Bound> room_bounds_;
  Ref<Storage> constants_;
  bool is_shared_work_ = false;                // other processes take part, and would wait for the rest
  size_t lists_run_ = 0, calls_in_lists_ = 0;  // in the last run
  std::deque<StepList> lists_;                 // end first: they refer to the items
};

}  // namespace plugrad::steps
