// Packs several results of an op into a single tensor, because a node of the graph has a single result.
#pragma once
#include <core/autograd/rule.hpp>
#include <core/ops/factors.hpp>
#include <plugrad/ops/views.hpp>

#include <vector>

namespace plugrad {

// The layout of results with a common batch, side by side along the last axis of a tensor (.., total).
class Packing {
 public:
  Packing(const std::vector<Tensor>& parts, int batch_rank) {
    for (const Tensor& part : parts)
      shapes_.push_back(
          Shape(std::span<const int64_t>(view_of(part).shape + batch_rank, static_cast<size_t>(part.rank() - batch_rank))));
  }

  static Tensor pack(const std::vector<Tensor>& parts, const Shape& batch) {
    const int64_t count = batch.count();
    std::vector<Tensor> flat;
    for (const Tensor& part : parts) {
      Shape shape = batch;
      shape.push_back(part.count() / (count ? count : 1));
      flat.push_back(reshape(part, shape));
    }
    return cat(flat, -1);
  }

  // Views of the packed tensor, or of its gradient.
  std::vector<Tensor> unpack(const Tensor& packed) const {
    std::vector<Tensor> parts;
    int64_t start = 0;
    for (const Shape& inner : shapes_) {
      Shape shape = batch_of(packed, 1);
      for (const int64_t extent : inner) shape.push_back(extent);
      parts.push_back(reshape(slice(packed, -1, start, start + inner.count()), shape));
      start += inner.count();
    }
    return parts;
  }

 private:
  std::vector<Shape> shapes_;  // without the batch
};

// The parts as results of the rule's op on a (.., m, n), if the op is recorded.
template <class RuleOfPacking>
std::vector<Tensor> recorded(const RuleOfPacking& rule, std::vector<Tensor> parts, const Tensor& a) {
  if (!a.requires_grad() || !recording()) return parts;
  const Packing packing(parts, a.rank() - 2);
  return packing.unpack(differentiable(rule, packing, Packing::pack(parts, batch_of(a)), a));
}

}  // namespace plugrad
