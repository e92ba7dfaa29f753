#include <core/ops/autocast_rules.hpp>

#include <plugrad/ops/elementwise.hpp>

namespace plugrad {
namespace {
// A parameter is converted once. Its conversion cannot serve again after a pass has spent its node, or once the parameter
// was written.
Tensor narrowed_parameter(Autocast::State& state, const Tensor& x) {
  const uint32_t version = storage_of(x)->version;
  auto& kept = (*state.cache)[&x.impl()];
  const auto serves = [&] {
    return kept.result.defined() && kept.result.dtype() == state.options.dtype && kept.version == version &&
           !(kept.result.impl().node->flags & Node::kSpent);
  };
  if (!serves()) kept = {x, cast(x, state.options.dtype), version};
  return kept.result;
}
}  // namespace

Tensor narrowed(const Tensor& x) {
  Autocast::State& state = autocast_state();
  if (!x.defined() || x.dtype() == state.options.dtype || !(x.dtype() == DType::f32 || is_half(dtype_of(x))) ||
      !state.covers(x))
    return x;
  const bool parameter = recording() && x.requires_grad() && x.is_leaf();
  return parameter && state.options.cache ? narrowed_parameter(state, x) : cast(x, state.options.dtype);
}

Tensor widened(const Tensor& x) {
  if (!x.defined() || !is_half(dtype_of(x)) || !autocast_state().covers(x)) return x;
  return cast(x, DType::f32);
}

}  // namespace plugrad
