// Trades time for memory: a function's intermediate values are not kept for the backward pass but computed again there.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace plugrad {

struct CheckpointOptions {
  // Whether the second run draws the same random numbers as the first. Generators belong to a device, not to a thread: draws
  // by other threads meanwhile disturb it.
  bool preserve_rng_state = true;
};

namespace detail {
PLUGRAD_API void checkpoint(std::function<void(const std::vector<Tensor>&)> f, const std::vector<Tensor>& inputs,
                            CheckpointOptions options);
}  // namespace detail

// Returns f(inputs). The ops in f are recorded, but keep no values for their gradients. The first pass to reach one of the
// ops runs f once more, with the same inputs, to compute all of the values.
//
// Gradients reach the inputs and all captured tensors of f, such as parameters. Checkpoints nest, and gradients may have
// graphs of their own. f must do the same each time: the pass throws Error (invalid) if f then records different ops, or if
// an input or a leaf used by f was written in place since. Effects of f happen twice. Without recording, this just calls f.
template <class F>
  requires std::invocable<F&, const std::vector<Tensor>&>
auto checkpoint(F f, const std::vector<Tensor>& inputs, CheckpointOptions options = {}) {
  using Result = std::invoke_result_t<F&, const std::vector<Tensor>&>;
  const auto result = std::make_shared<std::optional<Result>>();
  const auto run = [f = std::move(f), first = std::weak_ptr(result)](const std::vector<Tensor>& x) mutable {
    Result made = f(x);
    if (const auto wanted = first.lock()) wanted->emplace(std::move(made));
  };
  detail::checkpoint(run, inputs, options);
  return std::move(**result);
}

// As above, for functions of one to three tensors: checkpoint(f, x, y) returns f(x, y).
template <class F>
  requires std::invocable<F&, const Tensor&>
auto checkpoint(F f, const Tensor& x, CheckpointOptions options = {}) {
  return checkpoint([f = std::move(f)](const std::vector<Tensor>& all) mutable { return f(all[0]); }, std::vector<Tensor>{x},
                    options);
}
template <class F>
  requires std::invocable<F&, const Tensor&, const Tensor&>
auto checkpoint(F f, const Tensor& x, const Tensor& y, CheckpointOptions options = {}) {
  return checkpoint([f = std::move(f)](const std::vector<Tensor>& all) mutable { return f(all[0], all[1]); },
                    std::vector<Tensor>{x, y}, options);
}
template <class F>
  requires std::invocable<F&, const Tensor&, const Tensor&, const Tensor&>
auto checkpoint(F f, const Tensor& x, const Tensor& y, const Tensor& z, CheckpointOptions options = {}) {
  return checkpoint([f = std::move(f)](const std::vector<Tensor>& all) mutable { return f(all[0], all[1], all[2]); },
                    std::vector<Tensor>{x, y, z}, options);
}

}  // namespace plugrad
