// One run of a compiled function, as a recorder sees it.
#pragma once
#include <core/autograd/node.hpp>
#include <core/steps/digest.hpp>
#include <core/steps/trace.hpp>
#include <plugrad/steps/compile.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plugrad {

// A view of one of the step's memories; its offset counts from the memory's recorded base. Undefined: no memory.
struct StepView {
  uint32_t memory = steps::kNever;
  plugrad_view view{};
  Tensor empty{};  // a tensor without elements instead
  bool defined() const { return memory != steps::kNever; }
};

// A node's gradient before and after the step. An argument without a requested gradient has a different node in each call.
struct GradientPlace {
  Ref<Node> node;
  StepView before, after;
  std::optional<size_t> argument;
  const Storage* shared = nullptr;  // of `before`, if it had a further owner: a captured tensor or another gradient
};

// A gradient as an optimiser finds it in the step.
struct FoundGradient {
  Node* node;
  StepView gradient;
};

// Arguments with the same storage. Inside the step they share a second storage for the same memory, so that the recording
// can tell arguments from captured tensors.
struct ArgumentGroup {
  Ref<Storage> outside, inside;  // during the run
  size_t first;                  // the first argument of the group
  uint32_t version;              // of the inside, when the outside was last told of its writes
  uint32_t memory = steps::kNever;
  uint64_t offset = 0;  // of the first argument's view, from the memory's base
};

struct FunctionRun {
  StepResults results;  // for the caller
  std::vector<StepView> returned;
  steps::Trace trace;
  std::vector<ArgumentGroup> arguments;
  std::vector<StepView> given;  // the arguments as the step sees them
  std::vector<GradientPlace> gradients;
  std::vector<std::vector<FoundGradient>> found;  // by part of the step
  std::vector<uint64_t> digests;                  // of each call's results
  steps::HostResults host_results;
  std::string flaw;  // why the run cannot be replayed; empty if it can
};

// Calls f and records it. digests: whether to digest each call's results.
FunctionRun run_observed(const std::vector<Tensor>& arguments, const CompiledStep::Function& f, bool digests);

}  // namespace plugrad
