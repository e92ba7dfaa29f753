// Writes the calls of a fusion into a template, the SPIR-V of fusion.comp, or of product_fusion.comp behind a product. Each
// op is a function of the template.
#include <backends/vulkan/fusion_module.hpp>

#include <backends/vulkan/pipelines.hpp>
#include <backends/vulkan/spirv.hpp>

#include <algorithm>
#include <map>
#include <string>

namespace plugrad::vulkan {
namespace {

constexpr size_t kMostReductions = 8;  // the template's functions argument_0 to argument_7
// Drivers inline the functions, and some drivers compile long modules for minutes. lavapipe compiles a module of this size
// in half a second.
constexpr int kMostCode = 80;

// Returns the approximate size of the code of an op's function, in additions.
int code_of(uint32_t opcode) {
  switch (opcode) {
    case PLUGRAD_OP_GELU:
    case PLUGRAD_OP_GELU_BACKWARD:
    case PLUGRAD_OP_POW: return 20;
    default: return std::ranges::count(elementwise_ops().f32, opcode) ? 10 : 1;
  }
}

// The template's words without its names, and the ids of the functions and types that calls need.
struct Template {
  // A function whose instructions a fusion's calls replace.
  struct Slot {
    std::string name;
    size_t begin, end;
  };
  std::vector<uint32_t> words;
  std::map<std::string, uint32_t, std::less<>> functions;  // ids, by the name without parameters
  std::vector<Slot> slots;                                 // in the order of the words
  uint32_t void_type = 0, bool_type = 0, float_type = 0, uint_type = 0;
  size_t constants_at = 0;  // where constants may be added

  static const Template& of(bool has_head) {
    static const Template &plain = *new Template("fusion"), &headed = *new Template("product_fusion");
    return has_head ? headed : plain;
  }

 private:
  explicit Template(std::string_view name) {
    const Shader& shader = shader_of(name);
    const std::span<const uint32_t> all(shader.words, shader.count);
    words.assign(all.begin(), all.begin() + kHeaderWords);
    for (size_t at = kHeaderWords; at < all.size(); at += words_of(all[at])) {
      if (opcode_of(all[at]) == kOpName) note_name(all.subspan(at));
      else words.insert(words.end(), all.begin() + at, all.begin() + at + words_of(all[at]));
    }
    for (size_t at = kHeaderWords; at < words.size(); at += words_of(words[at])) read(at);
  }
  // The module keeps no names, because some of them belong to instructions that the slots lose.
  void note_name(std::span<const uint32_t> instruction) {
    const std::string_view name(reinterpret_cast<const char*>(&instruction[2]));
    if (name.find('(') != name.npos) functions.emplace(name.substr(0, name.find('(')), instruction[1]);
  }
  void read(size_t at) {
    switch (opcode_of(words[at])) {
      case kOpTypeVoid: void_type = words[at + 1]; break;
      case kOpTypeBool: bool_type = words[at + 1]; break;
      case kOpTypeFloat: float_type = words[at + 1]; break;
      case kOpTypeInt:
        if (words[at + 2] == 32 && !words[at + 3]) uint_type = words[at + 1];
        break;
      case kOpFunction:
        if (!constants_at) constants_at = at;
        begin_slot(at);
        break;
      case kOpFunctionEnd:
        if (!slots.empty() && !slots.back().end) slots.back().end = at;
        break;
      default: break;
    }
  }
  void begin_slot(size_t at) {
    const auto is_this = [&](const auto& function) { return function.second == words[at + 2]; };
    const auto found = std::ranges::find_if(functions, is_this);
    if (found == functions.end()) return;
    const std::string& name = found->first;
    if (name == "body" || name == "results" || name.starts_with("argument_"))
      slots.push_back({name, at + words_of(words[at]) + 2, 0});  // after the function's label
  }
};

// Writes the calls of one fusion.
class Writer {
 public:
  explicit Writer(const plugrad_fusion& block)
      : fusion_(block), template_(Template::of(fusion_.head())), next_(template_.words[kBoundAt]) {
    sources_.assign(fusion_.inputs(), {});
  }

  // Returns how many of the first instructions the template computes.
  uint32_t reach() {
    uint32_t taken = 0;
    for (const plugrad_fusion_instruction& each : fusion_.instructions()) {
      if (!takes(each) || (code_ += code_of(each.opcode)) > kMostCode) break;
      ++taken;
    }
    return taken;
  }

  FusionModule module() {
    if (!has_form()) return {};
    for (const Template::Slot& slot : template_.slots) {
      ids_.assign(fusion_.values().size(), 0);
      std::vector<uint32_t>& calls = bodies_.emplace_back();
      calls_ = &calls;
      is_of_elements_ = slot.name != "results";
      if (slot.name == "body") write_outputs(false);
      else if (slot.name == "results") write_outputs(true);
      else write_argument(static_cast<size_t>(slot.name.back() - '0'));
    }
    if (code_ > kMostCode) return {};
    made_.words = assembled();
    return std::move(made_);
  }

 private:
  struct Source {
    const plugrad_fusion_instruction* instruction;  // null for an input
    size_t reduction;                               // the index of the reduction, if the instruction is a reduction
  };

  // Fills `sources_`, and the axes and opcodes of the module's reductions. Returns false if the template cannot compute the
  // fusion.
  bool has_form() {
    for (const plugrad_fusion_instruction& each : fusion_.instructions())
      if (!takes(each)) return false;
    for (const plugrad_fusion_output& each : fusion_.outputs())
      if (each.over != PLUGRAD_FUSION_NONE && fusion_.values()[each.value].axes) return false;
    return true;
  }

  // Adds the instruction to `sources_` if the template computes it.
  bool takes(const plugrad_fusion_instruction& instruction) {
    const auto is_known = [&](uint16_t value) {
      const uint8_t dtype = fusion_.values()[value].dtype;
      return dtype == PLUGRAD_F32 || dtype == PLUGRAD_BOOL;
    };
    if (!is_known(static_cast<uint16_t>(sources_.size())) ||
        !std::ranges::all_of(fusion_.arguments_of(instruction), is_known))
      return false;
    const bool reduces = op_info(instruction.opcode)->shape == OpShape::reduction;
    if (&instruction != fusion_.head() && (reduces ? !note_reduction(instruction) : !has_function(instruction)))
      return false;
    sources_.push_back({&instruction, made_.reductions.size() - 1});
    return true;
  }

  bool note_reduction(const plugrad_fusion_instruction& instruction) {
    const plugrad_fusion_value &to = fusion_.values()[sources_.size()],
                               &from = fusion_.values()[fusion_.arguments_of(instruction)[0]];
    if (to.dtype != PLUGRAD_F32 || from.dtype != PLUGRAD_F32 || from.axes) return false;
    if (made_.reductions.size() == kMostReductions || (made_.reduced && made_.reduced != to.axes)) return false;
    made_.reduced = to.axes;
    made_.reductions.push_back(instruction.opcode);
    return true;
  }

  static bool is_copy(uint32_t opcode) { return opcode == PLUGRAD_OP_COPY || opcode == PLUGRAD_OP_FILL; }

  // The template's functions take f32, except the condition of WHERE and the operand of CAST, which are bool.
  bool has_function(const plugrad_fusion_instruction& instruction) const {
    const OpInfo& op = *op_info(instruction.opcode);
    if (is_copy(op.opcode)) return true;
    if (!template_.functions.contains(std::string("op_") + op.name)) return false;
    const auto arguments = fusion_.arguments_of(instruction);
    const bool has_condition = op.opcode == PLUGRAD_OP_CAST || op.opcode == PLUGRAD_OP_WHERE;
    for (size_t k = 0; k < arguments.size(); ++k)
      if ((fusion_.values()[arguments[k]].dtype == PLUGRAD_BOOL) != (has_condition && k == 0)) return false;
    return (op.operands[0] == 'B') == (fusion_.values()[sources_.size()].dtype == PLUGRAD_BOOL);
  }

  // Returns whether the value has one element per row.
  bool is_of_a_row(size_t value) const { return made_.reduced && !(made_.reduced & ~fusion_.values()[value].axes); }

  // Writes the outputs that have one element per row if `of_rows`, or else all remaining outputs.
  void write_outputs(bool of_rows) {
    for (size_t k = 0; k < fusion_.outputs().size(); ++k) {
      const uint16_t value = fusion_.outputs()[k].value;
      if (is_of_a_row(value) != of_rows) continue;
      const bool is_bool = fusion_.values()[value].dtype == PLUGRAD_BOOL;
      outputs_.push_back({constant(k), written(value), is_bool});
    }
    for (const auto& [place, id, is_bool] : std::exchange(outputs_, {}))
      call(is_bool ? "store_bool" : "store_f32", template_.void_type, {place, id});
    calls_->push_back(first_word(kOpReturn, 1));
  }

  void write_argument(size_t reduction) {
    for (size_t value = fusion_.inputs(); value < sources_.size(); ++value) {
      const plugrad_fusion_instruction& its = *sources_[value].instruction;
      if (op_info(its.opcode)->shape != OpShape::reduction || sources_[value].reduction != reduction) continue;
      const uint32_t id = written(fusion_.arguments_of(its)[0]);
      calls_->insert(calls_->end(), {first_word(kOpReturnValue, 2), id});
      return;
    }
    const uint32_t id = call("result_of", template_.float_type, {constant(0)});  // the fusion has fewer reductions
    calls_->insert(calls_->end(), {first_word(kOpReturnValue, 2), id});
  }

  // Returns the id of a value. Writes the calls that compute the value first, unless the slot already has them.
  uint32_t written(size_t value) {
    uint32_t& id = ids_[value];
    return id ? id : id = made(value);
  }

  uint32_t made(size_t value) {
    const bool is_bool = fusion_.values()[value].dtype == PLUGRAD_BOOL;
    const uint32_t type = is_bool ? template_.bool_type : template_.float_type;
    if (value < fusion_.inputs())
      return call(is_bool ? "load_bool" : "load_f32", type, {constant(fusion_.outputs().size() + value)});
    const plugrad_fusion_instruction& instruction = *sources_[value].instruction;
    if (&instruction == fusion_.head()) return call("head_result", type, {});
    const OpInfo& op = *op_info(instruction.opcode);
    if (op.shape == OpShape::reduction) {
      made_.goes_on = made_.goes_on || is_of_elements_;
      return call("result_of", type, {constant(sources_[value].reduction)});
    }
    std::vector<uint32_t> arguments;
    for (const uint16_t argument : fusion_.arguments_of(instruction)) arguments.push_back(written(argument));
    if (is_copy(op.opcode)) return arguments[0];
    if (op.opcode != PLUGRAD_OP_CAST && arguments.size() == 1) arguments.push_back(arguments[0]);
    code_ += code_of(op.opcode);
    return call(std::string("op_") + op.name, type, arguments);
  }

  uint32_t call(std::string_view function, uint32_t type, const std::vector<uint32_t>& arguments) {
    const uint32_t id = next_++, words = static_cast<uint32_t>(4 + arguments.size());
    const uint32_t callee = template_.functions.find(function)->second;
    calls_->insert(calls_->end(), {first_word(kOpFunctionCall, words), type, id, callee});
    calls_->insert(calls_->end(), arguments.begin(), arguments.end());
    return id;
  }

  uint32_t constant(size_t value) {
    const auto word = static_cast<uint32_t>(value);
    constants_.insert(constants_.end(), {first_word(kOpConstant, 4), template_.uint_type, next_, word});
    return next_++;
  }

  std::vector<uint32_t> assembled() const {
    const std::vector<uint32_t>& t = template_.words;
    std::vector<uint32_t> made(t.begin(), t.begin() + template_.constants_at);
    made[kBoundAt] = next_;
    made.insert(made.end(), constants_.begin(), constants_.end());
    size_t at = template_.constants_at;
    for (size_t i = 0; i < template_.slots.size(); ++i) {
      made.insert(made.end(), t.begin() + at, t.begin() + template_.slots[i].begin);
      made.insert(made.end(), bodies_[i].begin(), bodies_[i].end());
      at = template_.slots[i].end;
    }
    made.insert(made.end(), t.begin() + at, t.end());
    return made;
  }

  struct Stored {
    uint32_t place, value;
    bool is_bool;
  };
  const Fusion fusion_;
  const Template& template_;
  FusionModule made_;
  uint32_t next_;
  std::vector<Source> sources_;  // of the values
  std::vector<uint32_t> ids_;    // of the values, in the current slot; 0 for a value not yet written
  std::vector<Stored> outputs_;
  std::vector<std::vector<uint32_t>> bodies_;  // of the slots
  std::vector<uint32_t>* calls_ = nullptr;     // the body of the current slot
  bool is_of_elements_ = false;                // the current slot computes elements of rows
  std::vector<uint32_t> constants_;
  int code_ = 0;
};

}  // namespace

FusionModule module_of(const plugrad_fusion& fusion) { return Writer(fusion).module(); }
uint32_t reach_of(const plugrad_fusion& fusion) { return Writer(fusion).reach(); }

}  // namespace plugrad::vulkan
