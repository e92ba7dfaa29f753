// One run of a compiled function, as a recorder sees it.
#pragma once
#include <core/autograd/node.hpp>
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

// The gradient that a node holds before and after the step. The node of an argument whose gradient nobody asked for is that
// of another tensor in each call.
struct GradientPlace {
  Ref<Node> node;
  StepView before, after;
  std::optional<size_t> argument;
  const Storage* shared = nullptr;  // of `before`, if others held it too: a captured tensor, or another gradient
};

// A gradient that an optimiser finds in the step.
struct FoundGradient {
  Node* node;
  StepView gradient;
};

// The arguments that share one storage. Inside the step, they share another one for the same memory, so that the recording
// can tell them from tensors that the function captures.
struct ArgumentGroup {
  Ref<Storage> outside, inside;  // during the run
  size_t first;                  // the first argument of the group
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
  std::vector<uint64_t> digests;                  // of what each call wrote
  std::string flaw;                               // why it cannot be replayed; empty if it can
};

// Calls f and records it. digests: whether to read what each call writes.
FunctionRun run_observed(const std::vector<Tensor>& arguments, const CompiledStep::Function& f, bool digests);

}  // namespace plugrad
