// The extension of transcription.h: the fields of abi.h's structs, where a plugin in another language has them.
#include <sdk/conformance/session.hpp>

#include <plugrad/sdk/abi.h>
#include <plugrad/sdk/transcription.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::conformance {
namespace {

struct Field {
  std::string_view name;
  uint64_t offset, size;
};

constexpr Field kFields[] = {
#define PLUGRAD_FIELD(type, field) {#type "." #field, offsetof(plugrad_##type, field), sizeof(plugrad_##type::field)},
#include <plugrad/sdk/fields.def>
#undef PLUGRAD_FIELD
};

std::string place(uint64_t offset, uint64_t size) {
  return std::to_string(size) + " bytes at offset " + std::to_string(offset);
}

void check_field(const plugrad_transcribed& own, Tally& tally) {
  if (!tally.check(own.name, "the name of a field is null")) return;
  const auto* field = std::ranges::find(kFields, std::string_view(own.name), &Field::name);
  if (!tally.check(field != std::end(kFields), "the plugin has a field " + std::string(own.name) + ", which abi.h has not"))
    return;
  tally.check(own.offset == field->offset && own.size == field->size, "the plugin has " + std::string(own.name) + " as " +
                                                                          place(own.offset, own.size) + ", expected " +
                                                                          place(field->offset, field->size));
}

void check_transcription(Session& session, Tally& tally) {
  const plugrad_backend& table = *session.plugin.table;
  const void* found = table.get_extension ? table.get_extension(PLUGRAD_TRANSCRIPTION) : nullptr;
  if (!found) return tally.skip(std::string("the plugin does not offer ") + PLUGRAD_TRANSCRIPTION);
  const auto& own = *static_cast<const plugrad_transcription*>(found);
  if (!tally.check(own.struct_size >= sizeof own && (own.fields || !own.count),
                   "struct_size is " + std::to_string(own.struct_size) + ", expected at least " +
                       std::to_string(sizeof own) + ", with fields"))
    return;
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < own.count; ++i) {
    check_field(own.fields[i], tally);
    if (own.fields[i].name) names.push_back(own.fields[i].name);
  }
  for (const Field& field : kFields)
    tally.check(std::ranges::count(names, field.name) == 1, "the plugin's list has " + std::string(field.name) + " " +
                                                                std::to_string(std::ranges::count(names, field.name)) +
                                                                " times, expected once");
}

}  // namespace

std::vector<Case> transcription_cases() { return {{"contract.transcription", check_transcription}}; }

}  // namespace plugrad::conformance
