// Records the kernels of a function once, and replays them without the function: a training step, or a forward pass.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace plugrad {

struct CompileOptions {
  std::string name = "step";  // for messages
  // The most recordings to keep, each for different arguments; 0: as many as `memory` bytes hold, of the host and of
  // constants on the device. A further one replaces the one that was not used for longest. If most are replaced before they
  // are replayed a few times, the step warns once, and calls the function for a while.
  size_t entries = 0;
  uint64_t memory = uint64_t{256} << 20;
  // Whether successive calls run as one kernel, a fusion, where the device offers fusions. A fusion takes less time and
  // memory and computes the same bits. fusion_elements: the fewest elements of a fusion; 0: the device's own minimum.
  bool fuse = true;
  uint64_t fusion_elements = 0;
};

struct CompileFigures {
  size_t recorded = 0, replayed = 0, called = 0;  // calls recorded, calls replayed, and plain calls of the function
};

// The results of a function: tensors, and a number that describes them to the caller. A replay returns the function's
// number.
struct StepResults {
  std::vector<Tensor> tensors;
  uint64_t form = 0;
};

class Recording;

// A compiled function of any number of tensors; compile() lists the limits of such a function.
class PLUGRAD_API CompiledStep {
 public:
  using Function = std::function<StepResults(const std::vector<Tensor>&)>;
  using Numbers = std::function<std::vector<double>(uint64_t form)>;
  explicit CompiledStep(CompileOptions options = {});
  ~CompiledStep();
  CompiledStep(CompiledStep&&) noexcept;
  CompiledStep& operator=(CompiledStep&&) noexcept;

  // Returns f(arguments), recorded or replayed. constants: all other values on which f depends, as text; each text has its
  // own recordings.
  // numbers: if f takes lifted numbers (Number::lifted), returns the numbers for a replay of the recording whose results
  // have this form. Such a recording is kept only if another one, for plain numbers, has its calls.
  StepResults call(const std::vector<Tensor>& arguments, std::string_view constants, const Function& f,
                   const Numbers& numbers = {}) const;
  // Returns whether there is a recording for such a call.
  bool knows(const std::vector<Tensor>& arguments, std::string_view constants) const;
  // Tells what changed since the last call: the reason that explain() and warnings give for a new recording, unless the
  // form of an argument is the reason.
  void note_change(std::string what) const;
  // Forgets all recordings: for a function with changed dependencies.
  void clear() const;
  // Lists the recordings with their calls, fusions and memory, and says why calls run alone or were not recorded.
  std::string explain() const;
  CompileFigures figures() const;

 private:
  friend std::shared_ptr<const Recording> only_recording(const CompiledStep& step);
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {

template <class Result> std::vector<Tensor> to_list(Result&& result) {
  using Plain = std::remove_cvref_t<Result>;
  if constexpr (std::is_same_v<Plain, Tensor>) return {std::forward<Result>(result)};
  else if constexpr (std::is_same_v<Plain, std::vector<Tensor>>) return std::forward<Result>(result);
  else return std::apply([](auto&&... each) { return std::vector<Tensor>{each...}; }, std::forward<Result>(result));
}

template <class Result> Result from_list(std::vector<Tensor>&& list) {
  if constexpr (std::is_same_v<Result, Tensor>) return std::move(list[0]);
  else if constexpr (std::is_same_v<Result, std::vector<Tensor>>) return std::move(list);
  else
    return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
      return Result{std::move(list[kIndex])...};
    }(std::make_index_sequence<std::tuple_size_v<Result>>());
}

}  // namespace detail

// For language bindings with modules of their own: notes a module's change between training and evaluation. The ops of a
// step depend on this mode. module: a number of this module alone.
PLUGRAD_API void note_training(uint64_t module);
// For modules with hooks of their own: notes that a hook was added or removed, so that all compiled steps record anew. A
// hook added and removed inside a step is part of the step.
PLUGRAD_API void note_hook();
// Returns whether this thread records a compiled step.
PLUGRAD_API bool is_recording_step();
// For language bindings that lift numbers: begins a run of a function with lifted numbers on this thread.
PLUGRAD_API void begin_lifting();
// Ends it; returns whether its recording holds for other numbers: they were operands of recorded calls, and nothing else.
PLUGRAD_API bool end_lifting();
// As Tensor::from_host, for elements that belong to the program's text, or that are part of `constants`: a compiled step
// keeps them as constants, and replays do not copy them again. Other elements of the host are refused by steps.
PLUGRAD_API Tensor constant_from_host(const void* elements, size_t count, DType dtype, const Shape& shape, Device device);
// Tells this thread's recording, if any, that it cannot be replayed: the function is then called each time, after one
// warning with this reason.
PLUGRAD_API void note_unrepeatable(const char* why);

// A compiled function of tensors. It returns nothing, a tensor, or a std::vector, std::array, pair or tuple of tensors.
template <class F> class Compiled {
 public:
  Compiled(F f, CompileOptions options) : f_(std::move(f)), step_(std::move(options)) {}

  template <std::convertible_to<Tensor>... Arguments>
    requires std::invocable<F&, const std::enable_if_t<sizeof(Arguments) != 0, Tensor>&...>
  auto operator()(const Arguments&... arguments) {
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, const std::enable_if_t<sizeof(Arguments) != 0, Tensor>&...>>;
    const auto f = [this](const std::vector<Tensor>& x) {
      return StepResults{run<Result>(x, std::index_sequence_for<Arguments...>())};
    };
    StepResults results = step_.call({arguments...}, {}, f);
    if constexpr (!std::is_void_v<Result>) return detail::from_list<Result>(std::move(results.tensors));
  }

  void clear() { step_.clear(); }
  std::string explain() const { return step_.explain(); }
  CompileFigures figures() const { return step_.figures(); }
  // The step with its recordings, for save_model.
  const CompiledStep& step() const { return step_; }

 private:
  template <class Result, size_t... kIndex>
  std::vector<Tensor> run([[maybe_unused]] const std::vector<Tensor>& x, std::index_sequence<kIndex...>) {
    if constexpr (std::is_void_v<Result>) return f_(x[kIndex]...), std::vector<Tensor>();
    else return detail::to_list(f_(x[kIndex]...));
  }

  F f_;
  CompiledStep step_;
};

// Returns a function with the effects and results of f, to the same bits. Its first call runs f and records the kernels;
// later calls replay the kernels, with all temporary memory in one planned block. f may be a forward pass, or a whole
// training step with backward() and an optimiser's step():
//
//   auto step = plugrad::compile([&](const Tensor& x, const Tensor& y) {
//     optimizer.zero_grad();
//     Tensor loss = cross_entropy(model(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//
// A recording serves arguments of the same shapes, strides, dtypes and devices, with the same modes (NoGrad, Autocast,
// training modules); with different arguments or modes it records anew. Tensors captured by f, such as parameters, are part
// of the recording, and a replay uses their current contents. The gradients that f reads and stores, the random numbers that
// it draws, and the options and counters of optimisers are part of the recording too.
//
// Results have no graph: call backward() inside. f must not:
// - read the elements of a tensor (item, printing), copy data from the host or to another device: Error (invalid);
// - depend on, or change, anything but tensors: a replay repeats no other effects;
// - keep new tensors, except gradients: f is then called each time, after a warning.
// PLUGRAD_CAPTURE=off switches recording off; check compares every 16th replay with f, and throws Error (internal) with the
// first differing call.
//
// Several threads may call. Calls that only return results, such as forward passes under NoGrad, replay side by side, each
// thread with a recording and memory of its own; all other calls run one at a time. If a call of a replay fails, the
// results of the calls before it stay written.
template <class F> Compiled<std::decay_t<F>> compile(F&& f, CompileOptions options = {}) {
  return Compiled<std::decay_t<F>>(std::forward<F>(f), std::move(options));
}

}  // namespace plugrad
