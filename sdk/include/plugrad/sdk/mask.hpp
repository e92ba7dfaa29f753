// The mask of ATTENTION and ATTENTION_BACKWARD: a view of the scores' shape, or an immediate.
#pragma once
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

// Returns the mask as a view of the scores' shape (.., l, s). For an immediate the view has stride 0 on every axis, and no
// memory: its data<T>() is null, and immediate<T>(mask) is the number to add to each score.
inline plugrad_view mask_view(const plugrad_view& mask, const plugrad_view& query, const plugrad_view& key) {
  if (!is_immediate(mask)) return mask;
  plugrad_view view = query;
  const int last = view.rank - 1;
  view.shape[last] = key.shape[last - 1];
  view.dtype = mask.dtype;
  view.layout = PLUGRAD_STRIDED | PLUGRAD_BROADCAST;
  view.buffer = nullptr;
  view.offset = 0;
  view.count = 1;
  for (int d = 0; d <= last; ++d) {
    view.count *= view.shape[d];
    view.strides[d] = 0;
  }
  return view;
}

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
