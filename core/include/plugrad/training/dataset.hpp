// Samples by number, as DataLoader reads them.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace plugrad {

// A sample, such as {image, label}, or a batch of samples, where tensors have an additional axis in front.
using Sample = std::vector<Tensor>;
using Batch = std::vector<Tensor>;

// Derive from it to load single samples, for example from files. A loader with workers calls item and batch from several
// threads at once.
class PLUGRAD_API Dataset {
 public:
  virtual ~Dataset();
  // The number of samples. It must not change.
  virtual int64_t size() const = 0;
  // The sample i of 0 .. size() - 1. All samples have as many tensors, of the same shapes, unless the loader has a collate
  // function of its own.
  virtual Sample item(int64_t i) const = 0;
  // The samples of these numbers, in this order, as a batch: by default stack_samples of the results of item. Override it
  // where a batch is cheaper than its samples. An exception of item is passed on with the sample's number: see DataLoader.
  virtual Batch batch(std::span<const int64_t> numbers) const;
  // The samples of these numbers, by item; throws as batch does.
  std::vector<Sample> items(std::span<const int64_t> numbers) const;
};

// Stacks the first tensors of all samples, then the second tensors, and so on. Gradients flow back to the samples. Throws
// Error (invalid) for no samples, and if the samples differ in number, shapes, dtypes or devices of their tensors.
PLUGRAD_API Batch stack_samples(const std::vector<Sample>& samples);

// The rows of tensors with equal first extents: sample i has row i of each of them. A batch costs one copy of its rows for
// each tensor. Gradients flow back to the tensors.
class PLUGRAD_API TensorDataset final : public Dataset {
 public:
  // Throws Error (invalid) for no tensors, for a tensor of rank 0, and for different first extents.
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override { return tensors_[0].size(0); }
  Sample item(int64_t i) const override;
  Batch batch(std::span<const int64_t> numbers) const override;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace plugrad
