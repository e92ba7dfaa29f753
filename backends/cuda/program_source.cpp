#include <backends/cuda/program_source.hpp>

#include <backends/cuda/accumulator.hpp>
#include <plugrad/sdk/rows.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <vector>

namespace plugrad::cuda {
namespace {

std::string type_of(uint8_t dtype) { return "ElementType<" + std::to_string(dtype) + ">"; }
std::string value_name(size_t value) { return "v" + std::to_string(value); }
std::string output_name(size_t output) { return "out" + std::to_string(output); }

bool reduces(const plugrad_program_instruction& each) { return op_info(each.opcode)->shape == OpShape::reduction; }

class Writer {
 public:
  explicit Writer(const plugrad_program& block) : program_(block), made_by_(program_.values().size(), nullptr) {
    size_t made = program_.inputs();
    for (const plugrad_program_instruction& each : program_.instructions())
      for (size_t k = 0; k < each.results; ++k) made_by_[made++] = &each;
  }

  ProgramSource written() {
    if (!can_be_written()) return {};
    source_.reduced_outputs ? choose_accumulators() : choose_packs();
    if (source_.set_bytes[1] > kMostAccumulators) return {};
    source_.text = "#include <backends/cuda/program_reduction.hpp>\n#include <backends/cuda/update_functions.hpp>\n"
                   "#include <plugrad/sdk/functions.hpp>\n\n"
                   "namespace plugrad::cuda {\n\n" + body() + kernel("packs", source_.pack, source_.packs_each) +
                   kernel("singles", 1, source_.singles_each) + "\n}  // namespace plugrad::cuda\n";
    return std::move(source_);
  }

 private:
  static constexpr size_t kMostAccumulators = 160;  // bytes of a thread, which a block's shared memory has 256 times

  uint8_t dtype_of(size_t value) const { return program_.values()[value].dtype; }
  bool is_reduced(size_t value) const { return made_by_[value] && reduces(*made_by_[value]); }
  size_t argument_of(const plugrad_program_output& output) const {
    return program_.arguments_of(*made_by_[output.value])[0];
  }
  // The value of an output, before it is reduced.
  size_t whole(const plugrad_program_output& output) const {
    return is_reduced(output.value) ? argument_of(output) : output.value;
  }
  // In a reduction's sum or extreme.
  size_t accumulator_size(const plugrad_program_output& output) const {
    size_t size = 0;
    with_element_type(dtype_of(output.value), [&]<class T>(T) { size = sizeof(AccumulatorOf<T>); });
    return size;
  }

  bool can_be_written() {
    for (const plugrad_program_instruction& each : program_.instructions()) {
      const OpShape shape = op_info(each.opcode)->shape;
      const bool computes = shape == OpShape::elementwise || shape == OpShape::copy || shape == OpShape::update;
      if (!computes && !reduces(each) && each.opcode != PLUGRAD_OP_FILL) return false;
      for (const uint16_t argument : program_.arguments_of(each))
        if (is_reduced(argument) || (reduces(each) && program_.values()[argument].axes)) return false;
    }
    const plugrad_program_output* first = nullptr;  // that is reduced
    for (size_t k = 0; k < program_.outputs().size(); ++k) {
      const plugrad_program_output& each = program_.outputs()[k];
      if (!is_reduced(each.value)) {
        if (program_.values()[each.value].axes) return false;
        continue;
      }
      if (!first) first = &each;
      if (accumulator_size(each) % sizeof(int)) return false;  // warps exchange words
      const bool is_alike = program_.values()[each.value].axes == program_.values()[first->value].axes &&
                            element_size(dtype_of(argument_of(each))) == element_size(dtype_of(argument_of(*first))) &&
                            accumulator_size(each) == accumulator_size(*first);
      if (!is_alike) return false;
      source_.reduced_outputs |= 1u << k;
    }
    return true;
  }

  bool is_light(size_t most) const {
    const auto is_heavy = [](const plugrad_program_instruction& each) { return is_approximated(*op_info(each.opcode)); };
    return program_.outputs().size() + program_.inputs() <= most &&
           std::ranges::none_of(program_.instructions(), is_heavy);
  }

  // Packs are those of the reduction's own kernel: reduction.hpp.
  void choose_accumulators() {
    size_t loads = 0;
    for (size_t i = 0; i < program_.inputs(); ++i) loads += program_.values()[i].axes != program_.all_axes();
    for (const plugrad_program_output& each : program_.outputs()) {
      if (!is_reduced(each.value)) continue;
      source_.reduced_dtype = dtype_of(argument_of(each));
      source_.reduced_axes = program_.values()[each.value].axes;
      source_.pack = static_cast<int>(std::min<size_t>(8, 16 / element_size(source_.reduced_dtype)));
      const size_t size = accumulator_size(each);
      source_.set_bytes[0] += size;
      source_.set_bytes[1] += packs_along() ? size : size * static_cast<size_t>(source_.pack);
    }
    constexpr size_t kOnTheirWay = 4;  // packs
    source_.packs_each = is_light(8) ? static_cast<int>(std::max<size_t>(1, kOnTheirWay / std::max<size_t>(1, loads))) : 1;
    source_.singles_each = is_light(8) ? 2 * source_.packs_each : 1;
  }
  // Whether the last axis is reduced, so that the elements of a pack are of one line.
  bool packs_along() const { return source_.reduced_axes >> (program_.rank() - 1) & 1; }

  // As single kernels do: elementwise.hpp.
  void choose_packs() {
    size_t largest = 1;
    const auto note = [&](size_t value) { largest = std::max(largest, element_size(dtype_of(value))); };
    for (const plugrad_program_output& each : program_.outputs()) note(each.value);
    for (size_t i = 0; i < program_.inputs(); ++i) note(i);
    source_.pack = static_cast<int>(std::min<size_t>(8, 16 / largest));
    source_.packs_each = is_light(4) ? 2 : 1;
    source_.singles_each = is_light(4) ? 4 : 1;
  }

  std::string body() const {
    std::string parameters;
    for (size_t k = 0; k < program_.outputs().size(); ++k)
      parameters += (k ? ", " : "") + type_of(dtype_of(whole(program_.outputs()[k]))) + "& " + output_name(k);
    for (size_t i = 0; i < program_.inputs(); ++i)
      parameters += ", const " + type_of(dtype_of(i)) + "& " + value_name(i);
    std::string lines;
    size_t made = program_.inputs();
    for (const plugrad_program_instruction& each : program_.instructions()) {
      if (!reduces(each))
        lines += op_info(each.opcode)->shape == OpShape::update ? update(each, made) : computation(each, made);
      made += each.results;
    }
    for (size_t k = 0; k < program_.outputs().size(); ++k)
      lines += "    " + output_name(k) + " = " + value_name(whole(program_.outputs()[k])) + ";\n";
    return "struct Program {\n  static constexpr int kOutputs = " + std::to_string(program_.outputs().size()) +
           ";\n  static constexpr bool kInOut = false;\n"
           "  static constexpr uint32_t kReduced = " + std::to_string(source_.reduced_outputs) + ";\n"
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
    for (const plugrad_program_output& output : program_.outputs()) types += ", " + type_of(dtype_of(whole(output)));
    for (size_t i = 0; i < program_.inputs(); ++i) types += ", " + type_of(dtype_of(i));
    const std::string operands = std::to_string(program_.outputs().size() + program_.inputs());
    const std::string v = std::to_string(pack), u = std::to_string(each);
    const std::string head = "extern \"C\" __global__ void __launch_bounds__(kBlock) " + std::string(name) +
                             "(const __grid_constant__ ";
    if (!source_.reduced_outputs)
      return head + "Grid<" + operands + "> grid) {\n  map_all<Program, " + v + ", " + u + types +
             ">(grid, Program());\n}\n";
    return head + "ProgramReduction<" + operands + "> reduction) {\n  reduce_program<Program, " + u + ", SlotsOf<" + v +
           types + ">, SumSetOf<" + reductions(pack) + ">>(reduction);\n}\n";
  }

  std::string reductions(int pack) const {
    const std::string packing = pack == 1 ? "none" : packs_along() ? "along" : "across";
    std::string text;
    for (size_t k = 0; k < program_.outputs().size(); ++k) {
      const plugrad_program_output& output = program_.outputs()[k];
      if (!is_reduced(output.value)) continue;
      const std::string from = type_of(dtype_of(argument_of(output)));
      const uint32_t opcode = made_by_[output.value]->opcode;
      const std::string reducer = opcode == PLUGRAD_OP_SUM   ? "Sum<" + type_of(dtype_of(output.value)) + ", " + from + ">"
                                  : opcode == PLUGRAD_OP_MAX ? "Max<" + from + ">"
                                                             : "Min<" + from + ">";
      text += (text.empty() ? "Reduced<" : ", Reduced<") + std::to_string(k) + ", " + reducer + ", " + from +
              ", Packing::" + packing + ", " + std::to_string(pack) + ">";
    }
    return text;
  }

  const Program program_;
  std::vector<const plugrad_program_instruction*> made_by_;  // by value; null for inputs
  ProgramSource source_;
};

}  // namespace

ProgramSource source_of(const plugrad_program& program) { return Writer(program).written(); }

}  // namespace plugrad::cuda
