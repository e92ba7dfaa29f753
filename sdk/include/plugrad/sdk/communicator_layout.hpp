// The layout hash of communicator.h, computed as layout.hpp computes the hash of abi.h.
#pragma once
#include <plugrad/sdk/communicator.h>
#include <plugrad/sdk/layout.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

constexpr uint64_t communicator_layout_hash() {
  uint64_t h = 0xcbf29ce484222325u;
#define PLUGRAD_FIELD(type, field) \
  h = mix_layout(h, #type "." #field, offsetof(plugrad_##type, field), sizeof(plugrad_##type::field));
#include <plugrad/sdk/communicator_fields.def>
#undef PLUGRAD_FIELD
  return h;
}
static_assert(PLUGRAD_COMMUNICATOR_LAYOUT == communicator_layout_hash(),
              "a field moved: a new major, or (before the first release) a new hash");

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
