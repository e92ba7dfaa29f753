#include <core/distributed/buckets.hpp>

#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/transform.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad::distributed {
namespace {
uint64_t bytes_of(const Tensor& x) { return static_cast<uint64_t>(x.count()) * static_cast<uint64_t>(item_size(x.dtype())); }

bool fits(const std::vector<Tensor>& parameters, const Bucket& bucket, const Tensor& next) {
  const Tensor& first = parameters[bucket.parameters.front()];
  return first.dtype() == next.dtype() && first.device() == next.device();
}

void allocate(Bucket& bucket, const std::vector<Tensor>& parameters, bool wide, int64_t tail) {
  const NoGrad unrecorded;
  int64_t count = 0;
  for (const size_t i : bucket.parameters) count += parameters[i].count();
  const Tensor& first = parameters[bucket.parameters.front()];
  const DType dtype = wide ? accumulator_of(first.dtype()) : first.dtype();
  if (dtype != accumulator_of(dtype)) tail = 0;
  bucket.flat = zeros({count + tail}, dtype, first.device());
  if (tail) bucket.tail = narrow(bucket.flat, 0, count, tail);
  int64_t begin = 0;
  for (const size_t i : bucket.parameters) {
    const int64_t own = parameters[i].count();
    bucket.views.push_back(reshape(narrow(bucket.flat, 0, begin, own), parameters[i].shape()));
    begin += own;
  }
}
}  // namespace

std::vector<Bucket> make_buckets(const std::vector<Tensor>& parameters, const std::vector<size_t>& order, uint64_t bytes,
                                 bool wide, int64_t tail) {
  std::vector<Bucket> buckets;
  uint64_t filled = 0, wanted = bytes / 4;
  for (const size_t i : order) {
    const bool is_full = filled >= wanted;
    if (buckets.empty() || is_full || !fits(parameters, buckets.back(), parameters[i])) {
      if (!buckets.empty()) wanted = bytes;
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().parameters.push_back(i);
    filled += bytes_of(parameters[i]);
  }
  for (Bucket& each : buckets) allocate(each, parameters, wide, &each == &buckets.back() ? tail : 0);
  return buckets;
}

bool add_pass(Bucket& bucket, int pass, int passes) {
  const NoGrad unrecorded;
  const auto add_partial = [&](Tensor& partial) {
    // The earlier passes come first in the tree; a sum of two does not depend on their order.
    bucket.flat.add_(partial);
    partial = {};
  };
  size_t level = 0;
  for (int before = pass; before & 1; before >>= 1) add_partial(bucket.partials[level++]);
  if (pass + 1 < passes) {
    if (bucket.partials.size() <= level) bucket.partials.resize(level + 1);
    bucket.partials[level] = clone(bucket.flat);
    return false;
  }
  for (; level < bucket.partials.size(); ++level)
    if (bucket.partials[level].defined()) add_partial(bucket.partials[level]);
  return true;
}

}  // namespace plugrad::distributed
