// A program becomes SPIR-V by writing its calls into the template program.comp: each op is a function there.
#include <backends/vulkan/program.hpp>

#include <backends/vulkan/grid.hpp>
#include <backends/vulkan/spirv.hpp>

#include <cstring>
#include <map>

namespace plugrad::vulkan {
namespace {

// The template's words without its names, and the ids of what calls need.
struct Template {
  std::vector<uint32_t> words;
  std::map<std::string, uint32_t, std::less<>> functions;  // ids, by the name without parameters
  uint32_t void_type = 0, bool_type = 0, float_type = 0, uint_type = 0;
  size_t constants_at = 0;         // where constants may be added
  size_t body_at = 0, body_end = 0;  // the instructions of `body`

  static const Template& get() {
    static const Template& made = *new Template;
    return made;
  }

 private:
  Template() {
    const Shader& shader = shader_of("program");
    const std::span<const uint32_t> all(shader.words, shader.count);
    words.assign(all.begin(), all.begin() + kHeaderWords);
    for (size_t at = kHeaderWords; at < all.size(); at += words_of(all[at])) {
      if (opcode_of(all[at]) == kOpName) note_name(all.subspan(at));
      else words.insert(words.end(), all.begin() + at, all.begin() + at + words_of(all[at]));
    }
    for (size_t at = kHeaderWords; at < words.size(); at += words_of(words[at])) read(at);
  }
  // Names go: some belong to what `body` contained.
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
        if (words[at + 2] == functions.at("body")) body_at = at + words_of(words[at]) + 2;  // behind its label
        break;
      case kOpFunctionEnd:
        if (body_at && !body_end) body_end = at;
        break;
      default: break;
    }
  }
};

// Writes the calls of one program.
class Writer {
 public:
  explicit Writer(const plugrad_program& block) : program_(block), next_(template_.words[kBoundAt]) {}

  // Returns the module, or nothing if the program has an op or a dtype that the template lacks.
  std::vector<uint32_t> module() {
    const size_t outputs = program_.outputs().size();
    for (const plugrad_program_value& value : program_.values())
      if (value.dtype != PLUGRAD_F32 && value.dtype != PLUGRAD_BOOL) return {};
    for (size_t i = 0; i < program_.inputs(); ++i) {
      const bool is_bool = program_.values()[i].dtype == PLUGRAD_BOOL;
      ids_.push_back(call(is_bool ? "load_bool" : "load_f32", type_of(i), {constant(outputs + i)}));
    }
    for (const plugrad_program_instruction& each : program_.instructions())
      if (!write(each)) return {};
    for (size_t k = 0; k < outputs; ++k) {
      const uint16_t value = program_.outputs()[k].value;
      const bool is_bool = program_.values()[value].dtype == PLUGRAD_BOOL;
      call(is_bool ? "store_bool" : "store_f32", template_.void_type, {constant(k), ids_[value]});
    }
    calls_.push_back(first_word(kOpReturn, 1));
    return assembled();
  }

 private:
  uint32_t type_of(size_t value) const {
    return program_.values()[value].dtype == PLUGRAD_BOOL ? template_.bool_type : template_.float_type;
  }

  bool write(const plugrad_program_instruction& instruction) {
    const OpInfo& op = *op_info(instruction.opcode);
    std::vector<uint32_t> arguments;
    for (const uint16_t argument : program_.arguments_of(instruction)) arguments.push_back(ids_[argument]);
    if (op.opcode == PLUGRAD_OP_COPY || op.opcode == PLUGRAD_OP_FILL) {
      ids_.push_back(arguments[0]);
      return true;
    }
    const std::string name = std::string("op_") + op.name;
    if (!template_.functions.contains(name) || !has_form(instruction)) return false;
    if (op.opcode != PLUGRAD_OP_CAST && arguments.size() == 1) arguments.push_back(arguments[0]);
    ids_.push_back(call(name, type_of(ids_.size()), arguments));
    return true;
  }

  // The template's functions take f32, but for the condition of WHERE and what CAST converts.
  bool has_form(const plugrad_program_instruction& instruction) const {
    const auto arguments = program_.arguments_of(instruction);
    const bool has_condition = instruction.opcode == PLUGRAD_OP_CAST || instruction.opcode == PLUGRAD_OP_WHERE;
    for (size_t k = 0; k < arguments.size(); ++k)
      if ((program_.values()[arguments[k]].dtype == PLUGRAD_BOOL) != (has_condition && k == 0)) return false;
    const bool compares = op_info(instruction.opcode)->operands[0] == 'B';
    return compares == (program_.values()[ids_.size()].dtype == PLUGRAD_BOOL);
  }

  uint32_t call(std::string_view function, uint32_t type, const std::vector<uint32_t>& arguments) {
    const uint32_t id = next_++, words = static_cast<uint32_t>(4 + arguments.size());
    calls_.insert(calls_.end(), {first_word(kOpFunctionCall, words), type, id, template_.functions.find(function)->second});
    calls_.insert(calls_.end(), arguments.begin(), arguments.end());
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
    made.insert(made.end(), t.begin() + template_.constants_at, t.begin() + template_.body_at);
    made.insert(made.end(), calls_.begin(), calls_.end());
    made.insert(made.end(), t.begin() + template_.body_end, t.end());
    return made;
  }

  const Template& template_ = Template::get();
  const Program program_;
  uint32_t next_;
  std::vector<uint32_t> ids_;  // of the values
  std::vector<uint32_t> constants_, calls_;
};

class Pipeline final : public ProgramKernel {
 public:
  Pipeline(OpenDevice& device, int rank, VkPipeline pipeline)
      : ProgramKernel(device, run_kernel<run>, nullptr), rank_(rank), pipeline_(pipeline) {}

 private:
  static void run(const Call& call);
  Space space_for(const plugrad_op& op) const;

  int rank_;
  VkPipeline pipeline_;
};

// Throws UNSUPPORTED if offsets do not fit 32 bits.
void demand_narrow(const plugrad_view& view) {
  int64_t reach = 0;
  for (int d = 0; d < view.rank; ++d) reach += std::abs(view.strides[d]) * (view.shape[d] - 1);
  if (reach > kSpan) throw BackendError(PLUGRAD_UNSUPPORTED, "an operand of the program reaches too far");
}

Space Pipeline::space_for(const plugrad_op& op) const {
  const auto extents = space_of(op, rank_);
  Space space{};
  space.rank = static_cast<uint32_t>(rank_);
  int64_t count = 1;
  for (int d = 0; d < rank_; ++d) {
    count *= extents[d];
    const Divider divider(static_cast<uint32_t>(extents[d]));
    const int from_inside = rank_ - 1 - d;
    space.divisor[from_inside] = divider.divisor;
    space.magic[from_inside] = divider.magic;
    space.shift[from_inside] = divider.shift;
  }
  if (count > kSpan) throw BackendError(PLUGRAD_UNSUPPORTED, "the program has too many elements");
  space.count = static_cast<uint32_t>(count);
  for (int k = 0; k < op.outputs + op.inputs; ++k) {
    const Box::Operand operand(*op.views[k]);
    space.base[k] = reinterpret_cast<uint64_t>(operand.base);
    space.value[k] = operand.value;
    if (!operand.base) continue;
    demand_narrow(*op.views[k]);
    for (int d = 0; d < rank_; ++d) space.stride[k][rank_ - 1 - d] = static_cast<int32_t>(stride_of(*op.views[k], d));
  }
  return space;
}

void Pipeline::run(const Call& call) {
  const auto& self = *static_cast<const Pipeline*>(call.kernel());
  const Space space = self.space_for(call.op());
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  VulkanStream::Recording recording(stream, call.op().number);
  recording.dispatch(self.pipeline_, space, groups_for(space.count));
  recording.finish();
}

}  // namespace

std::unique_ptr<ProgramKernel> make_program(OpenDevice& device, Pipelines& pipelines, const plugrad_program& program) {
  const std::vector<uint32_t> module = Writer(program).module();
  if (module.empty()) return nullptr;
  return std::make_unique<Pipeline>(device, program.rank, pipelines.compile(module, 32, {}));
}

}  // namespace plugrad::vulkan
