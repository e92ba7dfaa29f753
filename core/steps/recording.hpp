// A recording of a compiled step: replays one run of its function.
#pragma once
#include <core/steps/function_run.hpp>
#include <core/steps/runner.hpp>
#include <plugrad/sdk/extent.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plugrad {

// One recorded run of a function, with all data for its replays.
class Recording {
 public:
  // arena: shared by the step's recordings; they never replay at the same time.
  Recording(std::string key, FunctionRun run, std::shared_ptr<steps::Arena> arena, const steps::FusionChoice& fusions);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Returns whether the gradients are as in the recording, and the program still holds all captured tensors.
  bool fits(const std::vector<Tensor>& arguments) const;
  bool has_captured() const;
  // Returns whether tensors of the step or arguments overlap in memory, with a write among them, in a step with fusions. A
  // fusion could not follow the effect of such a write.
  bool overlaps(const std::vector<Tensor>& arguments) const;
  // Returns nothing, without any effect, if an optimiser no longer repeats its recorded calls.
  std::optional<StepResults> replay(const std::vector<Tensor>& arguments);
  // Calls the function, and runs the recording from where the function began, but without any effect; returns a digest of
  // each call's results, see steps::Runner. function: returns what the host's work in it wrote.
  std::optional<std::vector<uint64_t>> rehearse(const std::vector<Tensor>& arguments,
                                                const std::function<const steps::HostResults&()>& function);
  // Describes the first call that differs between a run of the function and a rehearsal. Empty if no call differs.
  std::string difference(const std::vector<uint64_t>& digests, const FunctionRun& run) const;

  // Returns whether a copy could replace an argument: the step neither writes its memory, through any tensor, nor returns a
  // part of it. The arguments must fit.
  bool only_reads(size_t argument, const std::vector<Tensor>& arguments) const;

  // Returns whether the step takes numbers of the caller: see Number::lifted. They hold for the next replay.
  bool takes_numbers() const { return !runner_.plan().trace.lifted.empty(); }
  void set_numbers(const std::vector<double>& numbers) { runner_.set_numbers(numbers); }
  // Returns whether both have the same calls, with the same numbers except for those of the caller.
  bool has_calls_of(const Recording& other) const;
  uint64_t form() const { return form_; }
  // Returns whether a replay takes nothing but its arguments and changes nothing but its results: no tensor, gradient,
  // optimiser or generator, and nothing of the host.
  bool has_no_effects() const { return has_no_effects_; }

  const std::string key;
  std::string alike = {};  // as `key`, but without the arguments' alignments
  std::string text() const;
  // About the memory that the recording takes: of the host, and of constants on the device.
  uint64_t bytes() const;

  // A forward pass, for a file. Views count from the base of their memory. Throws Error (invalid) for a step that changes
  // tensors of the program, reads or changes gradients, draws random numbers, or runs an optimiser.
  struct ForwardPass {
    const std::vector<steps::Call>& calls;
    const std::vector<steps::Memory>& memories;
    const std::vector<StepView>&given, &results;
  };
  ForwardPass forward_pass() const;

 private:
  // The memory of a result or gradient. It outlives the step; each replay allocates it.
  struct Output {
    uint32_t memory;
    uint64_t bytes;
    Ref<Storage> storage = {};  // during a replay
  };

  // Outputs of gradients are placed one after the next, so that temporary memory can overlap several of them. If this fails,
  // because the program still holds some of them or memory is short, they are allocated separately, and the temporary memory
  // is in `spare`.
  struct Row {
    size_t room;
    std::vector<size_t> outputs;
    std::vector<uint64_t> bytes;
    int failures = 0;         // consecutive, up to the last replay
    Ref<Storage> spare = {};  // during a replay
  };

  // Stands for a gradient while an optimiser only shows its numbers: has the gradient's form, without its elements.
  struct Placeholder {
    size_t place;  // in gradients_
    Tensor gradient;
  };

  steps::Plan plan_of(steps::Trace trace, const steps::FusionChoice& fusions);
  void find_extents();
  void make_placeholders(const std::vector<std::vector<FoundGradient>>& found);
  bool renumber();
  void undo(size_t part);
  void undo_parts(size_t parts);
  template <class F> auto with_placeholders(size_t part, const F& f);
  void bind_arguments(const std::vector<Tensor>& arguments);
  void find_nodes(const std::vector<Tensor>& arguments);
  void release();
  bool outlives(uint32_t memory) const;
  bool is_used(uint32_t memory) const;
  void run();
  void bind_gradients();
  void bind_gradient_copies();
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
  std::vector<Ref<Storage>> held_;  // during a replay: of gradients from before the replay
  steps::Runner runner_;
  std::vector<uint32_t> outside_;  // memories of captured tensors
  std::vector<uint32_t> written_;  // memories older than the step, and written by it
  // Returns the extents of arguments and gradients. Their addresses may differ in each call.
  std::vector<MemoryExtent> moving_extents(const std::vector<Tensor>& arguments) const;
  std::vector<MemoryExtent> extents_;  // of captured tensors
  bool extents_conflict_ = false;
  bool has_no_effects_ = false;
  void find_effects();
};

// Returns the only recording of a compiled step. Throws Error (invalid) if it has none, or several.
std::shared_ptr<const Recording> only_recording(const CompiledStep& step);

}  // namespace plugrad
