#include <backends/cuda/program_source.hpp>

#include <plugrad/sdk/rows.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace plugrad::cuda {
namespace {

std::string type_of(uint8_t dtype) { return "ElementType<" + std::to_string(dtype) + ">"; }
std::string value_name(size_t value) { return "v" + std::to_string(value); }
std::string output_name(size_t output) { return "out" + std::to_string(output); }

bool can_be_written(const Program& program) {
  const auto is_written = [](const plugrad_program_instruction& each) {
    const OpShape shape = op_info(each.opcode)->shape;
    return shape == OpShape::elementwise || shape == OpShape::copy || shape == OpShape::update ||
           each.opcode == PLUGRAD_OP_FILL;
  };
  const auto is_whole = [&](const plugrad_program_output& each) { return !program.values()[each.value].axes; };
  return std::ranges::all_of(program.instructions(), is_written) && std::ranges::all_of(program.outputs(), is_whole);
}

class Writer {
 public:
  explicit Writer(const plugrad_program& block) : program_(block) {}

  ProgramSource written() {
    if (!can_be_written(program_)) return {};
    choose_packs();
    source_.text = "#include <backends/cuda/map.hpp>\n#include <backends/cuda/update_functions.hpp>\n"
                   "#include <plugrad/sdk/functions.hpp>\n\n"
                   "namespace plugrad::cuda {\n\n" + body() + kernel("packs", source_.pack, source_.packs_each) +
                   kernel("singles", 1, source_.singles_each) + "\n}  // namespace plugrad::cuda\n";
    return std::move(source_);
  }

 private:
  uint8_t dtype_of(size_t value) const { return program_.values()[value].dtype; }

  // As single kernels do: elementwise.hpp.
  void choose_packs() {
    size_t largest = 1;
    const auto note = [&](size_t value) { largest = std::max(largest, element_size(dtype_of(value))); };
    for (const plugrad_program_output& each : program_.outputs()) note(each.value);
    for (size_t i = 0; i < program_.inputs(); ++i) note(i);
    const auto is_heavy = [](const plugrad_program_instruction& each) { return is_approximated(*op_info(each.opcode)); };
    const bool is_light = program_.outputs().size() + program_.inputs() <= 4 &&
                          std::ranges::none_of(program_.instructions(), is_heavy);
    source_.pack = static_cast<int>(std::min<size_t>(8, 16 / largest));
    source_.packs_each = is_light ? 2 : 1;
    source_.singles_each = is_light ? 4 : 1;
  }

  std::string body() const {
    std::string parameters;
    for (size_t k = 0; k < program_.outputs().size(); ++k)
      parameters += (k ? ", " : "") + type_of(dtype_of(program_.outputs()[k].value)) + "& " + output_name(k);
    for (size_t i = 0; i < program_.inputs(); ++i)
      parameters += ", const " + type_of(dtype_of(i)) + "& " + value_name(i);
    std::string lines;
    size_t made = program_.inputs();
    for (const plugrad_program_instruction& each : program_.instructions()) {
      lines += op_info(each.opcode)->shape == OpShape::update ? update(each, made) : computation(each, made);
      made += each.results;
    }
    for (size_t k = 0; k < program_.outputs().size(); ++k)
      lines += "    " + output_name(k) + " = " + value_name(program_.outputs()[k].value) + ";\n";
    return "struct Program {\n  static constexpr int kOutputs = " + std::to_string(program_.outputs().size()) +
           ";\n  static constexpr bool kInOut = false;\n"
           "  __device__ __forceinline__ void operator()(" + parameters + ") const {\n" + lines + "  }\n};\n\n";
  }

  std::string computation(const plugrad_program_instruction& each, size_t made) const {
    return "    const " + type_of(dtype_of(made)) + " " + value_name(made) + " = " + result(each, made) + ";\n";
  }

  // The results begin as the old values.
  std::string update(const plugrad_program_instruction& each, size_t made) const {
    const auto arguments = program_.arguments_of(each);
    const std::string type = type_of(dtype_of(made));
    std::string line, operands;
    for (size_t k = 0; k < each.results; ++k) {
      line += "    " + type + " " + value_name(made + k) + " = " + value_name(arguments[k]) + ";\n";
      operands += (k ? ", " : "") + value_name(made + k);
    }
    for (size_t k = each.results; k < arguments.size(); ++k) operands += ", " + value_name(arguments[k]);
    return line + "    " + step(each, type) + "(" + operands + ");\n";
  }

  // The function of an update, with its attributes.
  std::string step(const plugrad_program_instruction& each, const std::string& type) const {
    const void* const attributes = program_.attributes_of(each);
    if (each.opcode == PLUGRAD_OP_DESCENT_STEP) return "DescentStep<" + type + ">()";
    if (each.opcode == PLUGRAD_OP_SGD_STEP) {
      const auto& a = *static_cast<const plugrad_sgd*>(attributes);
      return "SgdStep<" + type + ">(" + numbers({a.momentum, a.weight_decay}) + (a.nesterov ? "true)" : "false)");
    }
    const auto& a = *static_cast<const plugrad_adam*>(attributes);
    return "AdamStep<" + type + ">(" + numbers({a.beta1, a.beta2, a.epsilon, a.weight_decay}) +
           (a.decoupled ? "true)" : "false)");
  }

  // As hexadecimal digits, which are exact.
  static std::string numbers(std::initializer_list<double> values) {
    std::string text;
    for (const double value : values) {
      char digits[32];
      const char* const end = std::to_chars(digits, digits + sizeof digits, std::abs(value), std::chars_format::hex).ptr;
      text += std::signbit(value) ? "-0x" : "0x";
      text.append(digits, static_cast<size_t>(end - digits)).append(", ");
    }
    return text;
  }

  std::string result(const plugrad_program_instruction& instruction, size_t made) const {
    std::string arguments;
    for (const uint16_t argument : program_.arguments_of(instruction))
      arguments += (arguments.empty() ? "widened(" : ", widened(") + value_name(argument) + ")";
    const std::string type = type_of(dtype_of(made));
    switch (instruction.opcode) {
      case PLUGRAD_OP_FILL:
      case PLUGRAD_OP_COPY: return value_name(program_.arguments_of(instruction)[0]);
      case PLUGRAD_OP_CAST: return "static_cast<" + type + ">(Conversion<" + type + ">()(" + arguments + "))";
      default:
        return "static_cast<" + type + ">(Function<" + std::to_string(instruction.opcode) + ">()(" + arguments + "))";
    }
  }

  std::string kernel(const char* name, int pack, int each) const {
    std::string types;
    for (const plugrad_program_output& output : program_.outputs()) types += ", " + type_of(dtype_of(output.value));
    for (size_t i = 0; i < program_.inputs(); ++i) types += ", " + type_of(dtype_of(i));
    const std::string operands = std::to_string(program_.outputs().size() + program_.inputs());
    return std::string("extern \"C\" __global__ void __launch_bounds__(kBlock) ") + name +
           "(const __grid_constant__ Grid<" + operands + "> grid) {\n  map_all<Program, " + std::to_string(pack) + ", " +
           std::to_string(each) + types + ">(grid, Program());\n}\n";
  }

  const Program program_;
  ProgramSource source_;
};

}  // namespace

ProgramSource source_of(const plugrad_program& program) { return Writer(program).written(); }

}  // namespace plugrad::cuda
