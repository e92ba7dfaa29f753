// The rows of the benchmark, written once for all libraries, so that rows of the same name do the same work.
// A library L has: Tensor; uniform(shape, low, high); leaf(tensor); clear_grad, backward, add, mul, relu, exp, tanh,
// pow(x, number), sum, transpose, matmul; training_step(adam), a function that makes one step.
#pragma once
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad_bench {

// The layers of the trained network, and the images per step.
inline constexpr int64_t kLayers[] = {784, 512, 512, 10};
inline constexpr int64_t kBatch = 256;

// The limits of a device's rows: a naive device skips rows that would take hours.
struct Limits {
  int64_t elements = 10'000'000;
  int64_t matmul = 2048;
  bool training = true;
};

template <class L> class Rows {
 public:
  using Tensor = typename L::Tensor;

  // Registers all rows as prefix/name/size.
  static void add(const std::string& prefix, const L& library, const Limits& limits) {
    const Rows rows(prefix, library);
    rows.add_single_elements();
    for (int64_t n = 100; n <= limits.elements; n *= 10) rows.add_elementwise(n);
    for (int64_t n = 10'000; n <= limits.elements; n *= 10) rows.add_compound(n);
    for (int64_t n = 64; n <= limits.matmul; n *= 2) rows.add_matmul(n);
    if (limits.training) rows.add_training();
  }

 private:
  Rows(std::string prefix, const L& library) : prefix_(std::move(prefix)), library_(library) {}

  // Calls body(state), which creates its own tensors.
  template <class Body> void row(const std::string& name, Body body) const {
    benchmark::RegisterBenchmark((prefix_ + "/" + name).c_str(), body)->UseRealTime();
  }

  // Ops on one element: the cost of dispatch, recording and the graph.
  void add_single_elements() const {
    row("add/1", [l = library_](benchmark::State& state) {
      const Tensor a = l.uniform({1}, 0, 1), b = l.uniform({1}, 0, 1);
      for (auto _ : state) benchmark::DoNotOptimize(l.add(a, b));
    });
    row("add_recorded/1", [l = library_](benchmark::State& state) {
      const Tensor x = l.leaf(l.uniform({1}, 0, 1)), b = l.uniform({1}, 0, 1);
      for (auto _ : state) benchmark::DoNotOptimize(l.add(x, b));
    });
    row("mul_and_its_backward/1", [l = library_](benchmark::State& state) {
      Tensor x = l.leaf(l.uniform({1}, 0, 1));
      const Tensor factor = l.uniform({1}, 0.999, 1.001);
      for (auto _ : state) {
        l.clear_grad(x);
        l.backward(l.mul(x, factor));
      }
    });
    row("chain_of_1000_per_op/1", [l = library_](benchmark::State& state) {
      Tensor x = l.leaf(l.uniform({1}, 0, 1));
      const Tensor factor = l.uniform({1}, 0.999, 1.001);
      while (state.KeepRunningBatch(1000)) {
        l.clear_grad(x);
        Tensor y = x;
        for (int i = 0; i < 1000; ++i) y = l.mul(y, factor);
        l.backward(y);
      }
    });
  }

  template <class Op> void unary(const std::string& name, int64_t n, double low, double high, Op op) const {
    row(name + "/" + std::to_string(n), [l = library_, n, low, high, op](benchmark::State& state) {
      const Tensor x = l.uniform({n}, low, high);
      for (auto _ : state) benchmark::DoNotOptimize(op(l, x));
    });
  }
  template <class Op> void binary(const std::string& name, int64_t n, Op op) const {
    row(name + "/" + std::to_string(n), [l = library_, n, op](benchmark::State& state) {
      const Tensor a = l.uniform({n}, -1, 1), b = l.uniform({n}, -1, 1);
      for (auto _ : state) benchmark::DoNotOptimize(op(l, a, b));
    });
  }
  void add_elementwise(int64_t n) const {
    binary("add", n, [](const L& l, const Tensor& a, const Tensor& b) { return l.add(a, b); });
    binary("mul", n, [](const L& l, const Tensor& a, const Tensor& b) { return l.mul(a, b); });
    unary("relu", n, -1, 1, [](const L& l, const Tensor& x) { return l.relu(x); });
    unary("exp", n, -4, 4, [](const L& l, const Tensor& x) { return l.exp(x); });
    unary("tanh", n, -4, 4, [](const L& l, const Tensor& x) { return l.tanh(x); });
    unary("pow_2.5", n, 0.01, 4, [](const L& l, const Tensor& x) { return l.pow(x, 2.5); });
    unary("sum", n, -1, 1, [](const L& l, const Tensor& x) { return l.sum(x); });
  }

  // Square matrices of about n elements: a transposed operand, and a forward and a backward pass.
  void add_compound(int64_t n) const {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(n))));
    row("add_transposed/" + std::to_string(n), [l = library_, side](benchmark::State& state) {
      const Tensor a = l.uniform({side, side}, -1, 1), b = l.uniform({side, side}, -1, 1);
      for (auto _ : state) benchmark::DoNotOptimize(l.add(a, l.transpose(b)));
    });
    row("relu_mul_sum_forward_backward/" + std::to_string(n), [l = library_, side](benchmark::State& state) {
      Tensor x = l.leaf(l.uniform({side, side}, -1, 1));
      for (auto _ : state) {
        l.clear_grad(x);
        l.backward(l.sum(l.mul(l.relu(x), x)));
      }
    });
  }

  void add_matmul(int64_t n) const {
    row("matmul/" + std::to_string(n), [l = library_, n](benchmark::State& state) {
      const Tensor a = l.uniform({n, n}, -1, 1), b = l.uniform({n, n}, -1, 1);
      for (auto _ : state) benchmark::DoNotOptimize(l.matmul(a, b));
      state.counters["flops"] = benchmark::Counter(2.0 * static_cast<double>(n) * static_cast<double>(n * n),
                                                   benchmark::Counter::kIsIterationInvariantRate);
    });
  }

  void add_training() const {
    for (const bool adam : {false, true})
      row(std::string("mlp_step_") + (adam ? "adam" : "sgd") + "/" + std::to_string(kBatch),
          [l = library_, adam](benchmark::State& state) {
            const std::function<void()> step = l.training_step(adam);
            for (auto _ : state) step();
          });
  }

  std::string prefix_;
  L library_;
};

}  // namespace plugrad_bench
