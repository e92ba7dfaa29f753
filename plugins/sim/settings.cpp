#include <plugins/sim/settings.hpp>

namespace plugrad::sim {
namespace {
constexpr int64_t kDefaultMemory = int64_t(4) << 30, kLeastMemory = 4096, kMostMemory = int64_t(1) << 40;

struct FaultOption {
  const char* key;
  uint32_t fault;
};
constexpr FaultOption kFaults[] = {{"fail_at", PLUGRAD_SIM_FAIL},         {"index_error_at", PLUGRAD_SIM_INDEX_ERROR},
                                   {"refuse_at", PLUGRAD_SIM_REFUSE},     {"unsupported_at", PLUGRAD_SIM_UNSUPPORTED},
                                   {"no_room_at", PLUGRAD_SIM_NO_ROOM},   {"lose_at", PLUGRAD_SIM_LOSE},
                                   {"slow_at", PLUGRAD_SIM_SLOW},         {"fail_copy_at", PLUGRAD_SIM_FAIL_COPY},
                                   {"oom_at", PLUGRAD_SIM_OUT_OF_MEMORY}, {"full_at", PLUGRAD_SIM_FULL}};
static_assert(std::size(kFaults) == PLUGRAD_SIM_FAULTS);

[[noreturn]] void unknown(const char* key, std::string_view name, const std::string& expected) {
  throw BackendError(PLUGRAD_INVALID,
                     "option " + std::string(key) + ": '" + std::string(name) + "' is unknown; " + expected);
}

std::string known_dtypes() {
  std::string list;
  for (const DTypeInfo& each : kDTypes) list += (list.empty() ? "" : ", ") + std::string(each.label);
  return list;
}

// Commas or plus signs between the names: in an environment variable the comma ends the option.
template <class F> void for_each_name(const char* list, F each) {
  for (std::string_view rest = list ? list : ""; !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(",+"), rest.size());
    each(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}
}  // namespace

Settings::Settings(const Options& options) {
  options.allow({"latency", "memory", "without_layouts", "without_dtypes", "without_ops", "fail_at", "index_error_at",
                 "refuse_at", "unsupported_at", "no_room_at", "lose_at", "slow_at", "fail_copy_at", "oom_at", "full_at",
                 "reach"});
  latency = static_cast<uint32_t>(options.integer("latency", 0, 0, 1000000));
  memory = static_cast<uint64_t>(options.integer("memory", kDefaultMemory, kLeastMemory, kMostMemory));
  without_layouts = static_cast<uint16_t>(options.integer("without_layouts", 0, 0, PLUGRAD_ALL_LAYOUTS));
  reach = static_cast<uint32_t>(options.integer("reach", reach, 0, PLUGRAD_FUSION_INSTRUCTIONS));
  for (const FaultOption& option : kFaults)
    faults[option.fault] = static_cast<uint64_t>(options.integer(option.key, 0, 0, INT64_MAX));
  for_each_name(options.find("without_dtypes"), [&](std::string_view name) {
    const auto found = std::ranges::find_if(kDTypes, [&](const DTypeInfo& each) { return name == each.label; });
    if (found == std::end(kDTypes)) unknown("without_dtypes", name, "a list of " + known_dtypes() + " expected");
    without_dtypes |= 1u << found->dtype;
  });
  for_each_name(options.find("without_ops"), [&](std::string_view name) {
    const auto found = std::ranges::find_if(kOps, [&](const OpInfo& op) { return name == op.name; });
    if (found == std::end(kOps)) unknown("without_ops", name, "a list of names as in ops.def expected, like RELU,MATMUL");
    without_ops.push_back(found->opcode);
  });
}

bool Settings::leave(const plugrad_signature& signature) const {
  if (std::ranges::count(without_ops, signature.opcode)) return false;
  const OpInfo* op = op_info(signature.opcode);
  if (signature.layout & without_layouts && !(op && op->serves_every_layout())) return false;
  for (int i = 0; i < signature.outputs + signature.inputs; ++i)
    if (signature.dtypes[i] < kDTypeIds && without_dtypes >> signature.dtypes[i] & 1) return false;
  return true;
}

}  // namespace plugrad::sim
