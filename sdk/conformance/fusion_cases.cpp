// The extension of fusion.h: fusions have the bits of the device's own kernels.
#include <sdk/conformance/fusion_trial.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace plugrad::conformance {
namespace {

constexpr int kFusions = 150;                         // of each dtype
constexpr auto kCompiles = std::chrono::seconds(10);  // how long a device may decline a fusion while it compiles it

// -x x, in a space of one axis.
FusionProblem plain_fusion(int64_t elements, Random& random) {
  FusionProblem problem;
  problem.space = {elements};
  problem.inputs.push_back(random_array(PLUGRAD_F32, problem.space, {-1, 1}, random));
  problem.is_immediate = {false};
  problem.parts = {1,
                   1,
                   {{PLUGRAD_F32, 0}, {PLUGRAD_F32, 0}, {PLUGRAD_F32, 0}},
                   {{PLUGRAD_OP_NEG, {0}}, {PLUGRAD_OP_MUL, {1, 0}}},
                   {{2, PLUGRAD_FUSION_NONE}}};
  return problem;
}

void check_table(Session& session, Tally& tally) {
  const plugrad_fusions* const offered = fusions_offered_by(session);
  if (!offered) return tally.skip("the plugin runs no fusions");
  tally.check(offered->struct_size >= offsetof(plugrad_fusions, reach) && offered->kernel,
              "the list of fusions is incomplete");
  const uint32_t known = PLUGRAD_FUSION_REDUCTIONS | PLUGRAD_FUSION_ROWS | PLUGRAD_FUSION_UPDATES | PLUGRAD_FUSION_ALIKE |
                         PLUGRAD_FUSION_PRODUCTS | PLUGRAD_FUSION_NORMS | PLUGRAD_FUSION_ATTENTION;
  tally.check(!(offered->contents & ~known), "unknown bits in contents");
  const bool rows = offered->contents & PLUGRAD_FUSION_ROWS;
  tally.check(!rows || (offered->contents & PLUGRAD_FUSION_REDUCTIONS && offered->longest_row),
              "ROWS without REDUCTIONS, or without longest_row");
  tally.check(offered->least > 0 && offered->least < 1 << 30, "least is " + std::to_string(offered->least));
  Random random(session.settings.seed);
  const FusionProblem plain = plain_fusion(static_cast<int64_t>(std::max<uint64_t>(offered->least, 2)), random);
  Queue queue = session.device.make_queue();
  const plugrad_kernel* const kernel = kernel_of(session, plain, tally);
  if (!kernel) return tally.skip("no kernel for a fusion of NEG and MUL: a compiler may be missing, or an option is off");
  bool ran = runs_fusion(session, queue, plain, kernel, tally);
  for (const auto end = std::chrono::steady_clock::now() + kCompiles; !ran && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ran = runs_fusion(session, queue, plain, kernel, tally);
  }
  tally.check(ran, "the device runs not even NEG and MUL of `least` elements as a fusion");
}

// Returns the kinds of a fusion, in words to append to "fusions".
std::vector<std::string> kinds_of(const FusionParts& parts) {
  uint32_t heads = 0;
  bool reduces = false, goes_on = false, updates = false;
  std::vector<bool> is_reduced(parts.values.size());
  size_t made = parts.inputs;
  for (const FusionParts::Line& line : parts.lines) {
    const OpShape shape = op_info(line.opcode)->shape;
    heads |= head_content(line.opcode);
    for (const uint16_t argument : line.arguments) goes_on = goes_on || is_reduced[argument];
    if (shape == OpShape::reduction) reduces = is_reduced[made] = true;
    updates = updates || shape == OpShape::update;
    made += line.results;
  }
  std::vector<std::string> kinds{""};
  if (reduces) kinds.emplace_back(" that reduce");
  if (goes_on) kinds.emplace_back(" that go on after a reduction");
  if (updates) kinds.emplace_back(" that update");
  if (heads & PLUGRAD_FUSION_PRODUCTS) kinds.emplace_back(" that begin with a product");
  if (heads & PLUGRAD_FUSION_NORMS) kinds.emplace_back(" that begin with a normalisation");
  if (heads & PLUGRAD_FUSION_ATTENTION) kinds.emplace_back(" that begin with attention");
  return kinds;
}

// Returns a fusion with a head that the device takes as a whole, if it takes any.
std::optional<FusionProblem> headed_problem(const Session& session, const plugrad_fusions& offered, uint8_t dtype,
                                            const HasKernel& has, Random& random) {
  std::optional<FusionProblem> problem = random_headed_fusion(offered, dtype, has, random);
  if (!problem) return {};
  const Question question = question_for(problem->parts.lines[0].opcode, dtype);
  if (!resolve(session.device.table(), session.device.handle(), question, PLUGRAD_STRIDED))
    problem->is_turned.assign(problem->is_turned.size(), false);
  if (offered.struct_size < offsetof(plugrad_fusions, least_headed) || !offered.reach) return problem;
  const std::vector<uint64_t> block = packed(problem->parts);
  const uint32_t reach = offered.reach(session.device.handle(), reinterpret_cast<const plugrad_fusion*>(block.data()));
  if (reach < 2) return {};
  if (reach < problem->parts.lines.size()) problem->cut(reach);
  return problem;
}

void check_dtype(Session& session, Tally& tally, uint8_t dtype) {
  const plugrad_fusions* const offered = fusions_offered_by(session);
  if (!offered) return tally.skip("the plugin runs no fusions");
  const HasKernel has = [&](uint32_t opcode, uint8_t key) {
    Question question = question_for(opcode, key);
    if (opcode == PLUGRAD_OP_CAST) question = {op_info(opcode), {key, dtype}, 0};
    const auto found = [&](uint16_t layout) {
      return resolve(session.device.table(), session.device.handle(), question, layout) != nullptr;
    };
    return found(0) && (opcode != PLUGRAD_OP_CAST || (question.dtypes = {dtype, key}, found(0)));
  };
  Random random(session.settings.seed * 31 + dtype);
  Queue queue = session.device.make_queue();
  std::map<std::string, bool> ran;  // of each kind, whether a fusion ran
  for (int i = 0; i < kFusions; ++i) {
    std::optional<FusionProblem> headed;
    if (i % 3 == 0) headed = headed_problem(session, *offered, dtype, has, random);
    const FusionProblem problem = headed ? std::move(*headed) : random_fusion(*offered, dtype, has, random);
    const plugrad_kernel* const kernel = kernel_of(session, problem, tally);
    const bool this_one = kernel && runs_fusion(session, queue, problem, kernel, tally);
    for (const std::string& kind : kinds_of(problem.parts)) ran[kind] |= this_one;
  }
  const bool any = ran[""];
  for (const auto& [kind, one_did] : ran)
    if (!one_did && (any || kind.empty())) tally.skip("the device ran none of the fusions" + kind);
}

}  // namespace

std::vector<Case> fusion_cases() {
  std::vector<Case> all = {{"fusion.table", check_table}};
  for (const uint8_t dtype : {PLUGRAD_F32, PLUGRAD_F64, PLUGRAD_BF16, PLUGRAD_F16, PLUGRAD_I64, PLUGRAD_I32})
    all.push_back({std::string("fusion.") + dtype_info(dtype)->label,
                   [dtype](Session& session, Tally& tally) { check_dtype(session, tally, dtype); }});
  return all;
}

}  // namespace plugrad::conformance
