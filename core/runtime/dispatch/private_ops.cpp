#include <core/runtime/dispatch/private_ops.hpp>

#include <core/runtime/fork.hpp>
#include <core/runtime/plugins/foreign.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace plugrad {
namespace {
ForkMutex names_mutex;
std::map<uint32_t, std::string>& names() {  // names_mutex held; if two plugins use the same number, the first name stays
  static std::map<uint32_t, std::string>& all = *new std::map<uint32_t, std::string>;
  return all;
}

bool is_name(std::string_view text) {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && is_small(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_small(c) || (c >= '0' && c <= '9') || c == '_'; });
}

void check(const DeviceState& device, const plugrad_private_op& op, size_t place) {
  const auto fail = [&](const std::string& why) {
    throw_breach(device.name, "item " + std::to_string(place) + " of '" PLUGRAD_PRIVATE "' " + why);
  };
  if (!op.name || !is_name(op.name)) fail("has no name of small letters, digits and underscores");
  if (op.opcode < PLUGRAD_PRIVATE_OPS) fail("has opcode " + std::to_string(op.opcode) + ", which is not a private one");
  if (!op.outputs || op.outputs + op.inputs > PLUGRAD_MAX_OPERANDS)
    fail("has " + std::to_string(op.outputs) + " outputs and " + std::to_string(op.inputs) + " inputs");
  if (op.attributes && op.attributes < sizeof(uint32_t)) fail("has attributes without room for their size");
}
}  // namespace

std::vector<plugrad_private_op> private_ops_of(const DeviceState& device) {
  const auto* list = static_cast<const plugrad_private_ops*>(extension_of(device.table, PLUGRAD_PRIVATE));
  if (!list) return {};
  if (list->struct_size < sizeof *list || list->stride < sizeof(plugrad_private_op) || (list->count && !list->items))
    throw_breach(device.name, "the list of '" PLUGRAD_PRIVATE "' is incomplete");
  std::vector<plugrad_private_op> all(list->count);
  const auto* at = reinterpret_cast<const char*>(list->items);
  for (size_t i = 0; i < all.size(); ++i, at += list->stride) {
    std::memcpy(&all[i], at, sizeof all[i]);
    check(device, all[i], i);
    for (size_t j = 0; j < i; ++j)
      if (all[j].opcode == all[i].opcode || std::string_view(all[j].name) == all[i].name)
        throw_breach(device.name,
                     std::string("two items of '" PLUGRAD_PRIVATE "' share a name or an opcode: ") + all[i].name);
  }
  const std::lock_guard lock(names_mutex);
  for (const plugrad_private_op& each : all) names().try_emplace(each.opcode, each.name);
  return all;
}

std::string private_op_name(uint32_t opcode) {
  const std::lock_guard lock(names_mutex);
  const auto found = names().find(opcode);
  return found == names().end() ? std::string() : found->second;
}

}  // namespace plugrad
