// The memory in which gradients travel.
#pragma once
#include <plugrad/distributed/collectives.hpp>

#include <cstdint>
#include <vector>

namespace plugrad::distributed {

// Gradients of some parameters of one dtype and device, one after another in one tensor.
struct Bucket {
  Tensor flat;
  std::vector<size_t> parameters;
  std::vector<Tensor> views;     // of flat, by parameters, in their shapes
  Tensor tail;                   // of flat, behind the gradients: numbers that travel with them; undefined if there are none
  std::vector<Tensor> partials;  // the sums of 1, 2, 4, .. passes of this step; undefined where there is none
  size_t arrived = 0;            // gradients of the running pass
  Work work;
};

// Divides parameters, in this order, into buckets of at least so many bytes; the first is a quarter as large, because it
// should start early. wide: f16 and bf16 travel in f32, so that sums of several passes are rounded once. tail: the numbers
// behind the gradients of the last bucket, which has none where its dtype is a half.
std::vector<Bucket> make_buckets(const std::vector<Tensor>& parameters, const std::vector<size_t>& order, uint64_t bytes,
                                 bool wide, int64_t tail);

// Adds the gradients of pass `pass` of `passes`, which are in bucket.flat, to the sums of the passes before, as a binary
// counter does: the result is the tree of Order::ordered. Returns whether flat holds the sum of all passes.
bool add_pass(Bucket& bucket, int pass, int passes);

}  // namespace plugrad::distributed
