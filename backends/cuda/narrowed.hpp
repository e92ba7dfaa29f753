// Arguments for kernels compiled at run time. The host's code does not know the kernels' number of operands.
#pragma once
#include <backends/cuda/map.hpp>

#include <cstring>

namespace plugrad::cuda {

// The bytes of a struct of N operands, written member by member from the same struct of more operands.
template <class Wide> class Narrowed {
 public:
  explicit Narrowed(int operands) : operands_(static_cast<size_t>(operands)) {}

  template <class T> void add(const T& member) { append(&member, 1); }
  template <int M> void add(const Memories<M>& from) {
    append(from.base, operands_);
    append(from.value, operands_);
    append(&from.vectors, 1);
    align(alignof(Memories<M>));
  }
  template <int M> void add(const Axes<M>& from) {
    append(&from.rank, 1);
    append(from.extent, std::size(from.extent));
    append(from.stride, operands_);
  }
  void* bytes() { return bytes_; }

 private:
  void align(size_t to) { size_ = (size_ + to - 1) / to * to; }
  template <class T> void append(const T* from, size_t count) {
    align(alignof(T));
    std::memcpy(bytes_ + size_, from, count * sizeof(T));
    size_ += count * sizeof(T);
  }

  alignas(Wide) char bytes_[sizeof(Wide)] = {};
  size_t operands_, size_ = 0;
};

}  // namespace plugrad::cuda
