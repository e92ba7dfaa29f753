// The layout hash covers name, offset and size of every field of abi.h, struct by struct, then the fields of each revision.
// sdk/data/layout.json has the same as data.
#pragma once
#include <plugrad/sdk/abi.h>

#pragma GCC visibility push(hidden)
namespace plugrad {
inline namespace sdk_v0_r0 {

constexpr uint64_t mix_layout(uint64_t hash, const char* name, uint64_t offset, uint64_t size) {
  constexpr uint64_t kPrime = 0x100000001b3u;  // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
  for (; *name; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * kPrime;
  return ((hash ^ offset) * kPrime ^ size) * kPrime;
}

constexpr uint64_t layout_hash(unsigned revision) {
  uint64_t h = 0xcbf29ce484222325u;
#define PLUGRAD_FIELD(type, field) \
  h = mix_layout(h, #type "." #field, offsetof(plugrad_##type, field), sizeof(plugrad_##type::field));
#include <plugrad/sdk/fields.def>
#undef PLUGRAD_FIELD
  (void)revision;  // revision 1 appends its fields here, behind `if (revision == 0) return h;`
  return h;
}
static_assert(PLUGRAD_LAYOUT_0 == layout_hash(0), "a field moved: a new major, or (before the first release) a new hash");

}  // namespace sdk_v0_r0
}  // namespace plugrad
#pragma GCC visibility pop
