// Attention and its gradients: the plan cuts them into blocks of queries and keys. The kernels of one instruction set
// multiply the blocks and pass over their rows.
#pragma once
#include <backends/cpu/product.hpp>

#include <limits>

namespace plugrad::cpu {

// Passes over the scores of one query; attention.cpp describes them.
template <class W> struct ScoreKernels {
  W (*weigh)(W* x, const W* mask, int64_t n, W scale);
  W (*exponentiate)(W* x, int64_t n, int64_t end, W shift);
  void (*multiply)(W* to, const W* from, int64_t n, W factor);
  void (*slope)(W* slopes, const W* weights, int64_t end, W delta, W scale);
  W (*dot)(const W* a, const W* b, int64_t n);
  W (*exponential)(W x);
  void (*logarithm)(W* x, int64_t n);
};

template <class T>
void run_attention(const Call& call, const ProductKernels<ComputeType<T>>& products,
                   const ScoreKernels<ComputeType<T>>& rows);
template <class T> uint64_t attention_workspace(const Call& call);
template <class T>
void run_attention_backward(const Call& call, const ProductKernels<T>& products, const ScoreKernels<T>& rows);
template <class T> uint64_t attention_backward_workspace(const Call& call);

}  // namespace plugrad::cpu
