#include <core/tensor/tensor_transform.hpp>

#include <core/tensor/impl.hpp>

#include <utility>

namespace plugrad {

TensorTransform* transform_of(std::span<const Tensor> tensors) {
  Transform* found = nullptr;
  if (!stand_ins::is_on()) return nullptr;
  for (const Tensor& each : tensors) {
    const StandIn* const stand_in = each.defined() ? storage_of(each)->stand_in : nullptr;
    if (stand_in && (!found || stand_in->transform->id > found->id)) found = stand_in->transform.get();
  }
  return static_cast<TensorTransform*>(found);
}

Tensor constant(const Tensor& x) {
  TensorTransform* const inside = transform_of({&x, 1});
  if (!inside) return ungraphed(x);
  const stand_ins::Below below(*inside);
  return inside->constant_of(x);
}

namespace {
// Whether a transform with a larger id has ended, among those that the storage or its memory stands in.
bool has_ended(const Storage& storage, uint64_t id) {
  const StandIn* const in = storage.stand_in;
  if (!in || in->transform->id <= id) return false;
  return !stand_ins::is_live(*in->transform) || has_ended(*in->value, id) || (in->tangent && has_ended(*in->tangent, id));
}
}  // namespace

Tensor outside_transforms(Tensor grad, uint64_t id) {
  while (grad.defined() && has_ended(*storage_of(grad), id)) {
    TensorTransform* const inside = transform_of({&grad, 1});
    if (stand_ins::is_live(*inside))
      return inside->within({grad}, [id](const std::vector<Tensor>& x) { return outside_transforms(x[0], id); });
    grad = inside->leave(grad);
  }
  return grad;
}

}  // namespace plugrad
