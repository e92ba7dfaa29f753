#include <plugrad/training/dataset.hpp>

#include <plugrad/ops/selection.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/error.hpp>

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace plugrad {
namespace {

// Throws the current exception again, with the number of the sample.
[[noreturn]] void rethrow_for(int64_t number) {
  const std::string where = "[DataLoader] sample " + std::to_string(number) + ": ";
  try {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), where + error.what(), error.first(), error.last());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(Code::invalid, where + error.what()));
  }
}

}  // namespace

Dataset::~Dataset() = default;

std::vector<Sample> Dataset::items(std::span<const int64_t> numbers) const {
  std::vector<Sample> samples;
  samples.reserve(numbers.size());
  for (const int64_t number : numbers) {
    try {
      samples.push_back(item(number));
    } catch (...) {
      rethrow_for(number);
    }
  }
  return samples;
}

Batch Dataset::batch(std::span<const int64_t> numbers) const { return stack_samples(items(numbers)); }

Batch stack_samples(const std::vector<Sample>& samples) {
  if (samples.empty()) throw Error(Code::invalid, "[stack_samples] there are no samples");
  Batch batch;
  for (size_t part = 0; part < samples[0].size(); ++part) {
    std::vector<Tensor> parts;
    for (const Sample& sample : samples) {
      if (sample.size() != samples[0].size())
        throw Error(Code::invalid, "[stack_samples] one sample has " + std::to_string(samples[0].size()) +
                                       " tensors and another one " + std::to_string(sample.size()) +
                                       ": give the loader a collate function");
      parts.push_back(sample[part]);
    }
    batch.push_back(stack(parts));
  }
  return batch;
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw Error(Code::invalid, "[TensorDataset] no tensors were given");
  for (const Tensor& each : tensors_) {
    if (!each.defined() || each.rank() == 0)
      throw Error(Code::invalid, "[TensorDataset] a tensor of rank 0 has no rows: one row for each sample is expected");
    if (each.size(0) != size())
      throw Error(Code::invalid, "[TensorDataset] the tensors have " + std::to_string(size()) + " and " +
                                     std::to_string(each.size(0)) + " rows: as many are expected of each");
  }
}

Sample TensorDataset::item(int64_t i) const {
  Sample sample;
  for (const Tensor& each : tensors_) sample.push_back(select(each, 0, i));
  return sample;
}

Batch TensorDataset::batch(std::span<const int64_t> numbers) const {
  const Shape count{static_cast<int64_t>(numbers.size())};
  Batch batch;
  Tensor index;
  for (const Tensor& each : tensors_) {
    if (!index.defined() || index.device() != each.device())
      index = Tensor::from_host(numbers.data(), numbers.size(), DType::i64, count, each.device());
    batch.push_back(index_select(each, 0, index));
  }
  return batch;
}

}  // namespace plugrad
