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

Tensor outside_transforms(Tensor grad, uint64_t id) {
  while (grad.defined()) {
    TensorTransform* const inside = transform_of({&grad, 1});
    if (!inside || inside->id <= id) break;
    if (stand_ins::is_live(*inside))
      return inside->within(grad, [id](Tensor x) { return outside_transforms(std::move(x), id); });
    grad = inside->leave(grad);
  }
  return grad;
}

}  // namespace plugrad
