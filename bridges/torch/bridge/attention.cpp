// Attention as one op: PyTorch's scaled_dot_product_attention asks the device whether it has one.
#include <ATen/Operators.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <bridge/gradient.hpp>
#include <bridge/kernel.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/gradients.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>

namespace plugrad_torch {
namespace o = at::_ops;
namespace {
int64_t choose(const T& query, const T& key, const T& value, const OptT& mask, double dropout, bool, std::optional<double>,
               bool grouped) {
  const bool learns_mask = mask && mask->defined() && mask->requires_grad();
  const auto q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();  // torch.compile asks with symbols
  const bool fits = !dropout && !grouped && !learns_mask && query.dim() == 4 && at::isFloatingType(query.scalar_type()) &&
                    q[0] == k[0] && q[1] == k[1] && k[0] == v[0] && k[1] == v[1] && k[2] == v[2] && query.sym_numel() > 0 &&
                    key.sym_numel() > 0 && value.sym_numel() > 0;
  return static_cast<int64_t>(fits ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

// PyTorch adds the mask with the extents of the queries and keys; its leading axes may be missing.
P mask_of(const OptT& mask, const P& query) {
  if (!mask || !mask->defined() || !mask->numel()) return {};
  const P values = over(*mask);
  return values.dtype() == DType::boolean ? values : plugrad::cast(values, query.dtype());
}

// y in memory in the order of like's axes, as PyTorch's own ops return it: heads that were views of rows stay views.
T in_order_of(const P& y, const T& like) {
  std::vector<int64_t> order = {0, 1, 2, 3}, back(4);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return like.stride(a) > like.stride(b); });
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  if (std::ranges::is_sorted(order)) return result(y);
  return result(plugrad::contiguous(plugrad::permute(y, Shape(order)))).permute(back);
}

using Forward = std::tuple<T, T, T, T, c10::SymInt, c10::SymInt, T, T, T>;
Forward attention(const T& query, const T& key, const T& value, const OptT& mask, double dropout, bool causal, bool,
                  std::optional<double> scale) {
  TORCH_CHECK(dropout == 0, "plugrad's attention has no dropout");
  const P q = over(query);
  const plugrad::Attention made = plugrad::attention_with_lse(q, over(key), over(value), mask_of(mask, q), causal, scale);
  const T none = unused({0}, at::kLong, query.device().index());
  return {in_order_of(made.out, query), result(made.lse), T(), T(), query.size(2), key.size(2), none, none, T()};
}
std::tuple<T, T, T, T> attention_backward(const T& grad, const T& query, const T& key, const T& value, const T& mask,
                                          std::array<bool, 4> wanted, const T& out, const T& lse, const T&, const T&,
                                          c10::SymInt, c10::SymInt, double, bool causal, const T&, const T&,
                                          std::optional<double> scale) {
  const P q = over(query);
  const plugrad::AttentionGradients made = plugrad::attention_backward(
      over(grad), q, over(key), over(value), mask_of(mask, q), over(out), over(lse), causal, scale);
  const auto given = [&](bool is_wanted, const P& x, const T& like) { return is_wanted ? in_order_of(x, like) : T(); };
  return {given(wanted[0], made.query, query), given(wanted[1], made.key, key), given(wanted[2], made.value, value), T()};
}
}  // namespace
}  // namespace plugrad_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &plugrad_torch::choose);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace plugrad_torch;
  kernel<o::_scaled_dot_product_fused_attention_overrideable, attention>(library);
  kernel<o::_scaled_dot_product_fused_attention_overrideable_backward, attention_backward>(library);
}
