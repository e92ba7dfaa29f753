// A recording of a compiled step: replays one run of its function.
#pragma once
#include <core/steps/function_run.hpp>
#include <core/steps/runner.hpp>
#include <plugrad/sdk/extent.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plugrad {

// One recording: what replays it.
class Recording {
 public:
  // arena: of the step's recordings, which never replay at the same time.
  Recording(std::string key, FunctionRun run, std::shared_ptr<steps::Arena> arena, const steps::FusionChoice& fusions);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Whether the gradients are such as the recording met, and the program still has the tensors that the function captured.
  bool fits(const std::vector<Tensor>& arguments) const;
  bool has_captured() const;
  // Whether tensors of the step, or arguments, overlap in memory, where a fusion could not follow what one of
  // them does to another.
  bool overlaps(const std::vector<Tensor>& arguments) const;
  // Returns nothing, with no effect, if an optimiser now does something else.
  std::optional<StepResults> replay(const std::vector<Tensor>& arguments);
  // The same without any effect; returns a digest of what each call wrote, see steps::Runner.
  std::optional<std::vector<uint64_t>> rehearse(const std::vector<Tensor>& arguments);
  // How a run of the function differs from a rehearsal: in the first call that does. Empty if it does not.
  std::string difference(const std::vector<uint64_t>& digests, const FunctionRun& run) const;

  // Whether the step neither writes the memory of an argument, by whatever tensor, nor returns a part of it: a copy serves
  // as well. The arguments fit.
  bool only_reads(size_t argument, const std::vector<Tensor>& arguments) const;

  const std::string key;
  std::string alike = {};  // the key of all arguments that differ from these in their alignment alone
  std::string text() const;

  // What a forward pass does, for a file. Views count from the base of their memory. Throws Error (invalid) for a step that
  // does more: changes tensors of the program or gradients, draws random numbers, or runs an optimiser.
  struct ForwardPass {
    const steps::Trace& trace;
    const std::vector<StepView>&given, &results;
  };
  ForwardPass forward_pass() const;

 private:
  // Memory that outlives the step: of results and gradients. Each replay allocates it.
  struct Output {
    uint32_t memory;
    uint64_t bytes;
    Ref<Storage> storage = {};  // during a replay
  };

  // Those of gradients follow each other in memory, so that temporary memory can lie in several of them. Where that fails,
  // because the program still holds some or memory is short, they lie apart, and that temporary memory is the spare one.
  struct Row {
    size_t room;
    std::vector<size_t> outputs;
    std::vector<uint64_t> bytes;
    int failures = 0;         // in the last replays
    Ref<Storage> spare = {};  // during a replay
  };

  // A gradient that an optimiser finds when it only shows its numbers: of its form, without its elements.
  struct Placeholder {
    size_t place;  // in gradients_
    Tensor gradient;
  };

  steps::Plan plan_of(steps::Trace trace, const steps::FusionChoice& fusions);
  void find_extents();
  void make_placeholders(const std::vector<std::vector<FoundGradient>>& found);
  bool renumber();
  void undo_parts();
  template <class F> void with_placeholders(size_t part, const F& f);
  void bind_arguments(const std::vector<Tensor>& arguments);
  void find_nodes(const std::vector<Tensor>& arguments);
  void release();
  bool outlives(uint32_t memory) const;
  bool is_used(uint32_t memory) const;
  void run();
  void bind_gradients(bool drop);
  void find_rows();
  bool take_row(Row& row);
  void bind_outputs(bool apart);
  void store_gradients();
  void raise_versions();
  Tensor tensor_of(const StepView& view) const;

  std::vector<ArgumentGroup> arguments_;
  std::vector<StepView> given_;
  std::vector<StepView> results_;
  uint64_t form_;
  std::vector<GradientPlace> gradients_;
  std::vector<std::vector<Placeholder>> placeholders_;
  std::vector<Output> outputs_;
  std::vector<Row> rows_;
  std::shared_ptr<steps::Arena> arena_;
  std::vector<Ref<Storage>> held_;  // during a replay: of gradients that were there before
  steps::Runner runner_;
  std::vector<uint32_t> outside_;  // memories of tensors that the function captured
  std::vector<uint32_t> written_;  // memories from outside that the step writes
  // Of arguments and gradients, which may lie elsewhere in each call.
  std::vector<MemoryExtent> moving_extents(const std::vector<Tensor>& arguments) const;
  std::vector<MemoryExtent> extents_;  // of captured tensors
  bool extents_conflict_ = false;
};

// The only recording of a compiled step. Throws Error (invalid) if it has none, or several.
std::shared_ptr<const Recording> only_recording(const CompiledStep& step);

}  // namespace plugrad
