#include <backends/cuda/fusion_source.hpp>

#include <backends/cuda/fusion_shape.hpp>
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
std::string reduced_name(size_t reduction) { return "in" + std::to_string(reduction); }
std::string result_name(size_t reduction) { return "r" + std::to_string(reduction); }

class Writer {
 public:
  explicit Writer(const plugrad_fusion& block) : shape_(block) {}

  FusionSource written() {
    if (!shape_.can_be_written()) return {};
    reduces() ? choose_accumulators() : choose_packs();
    if (source_.set_bytes[1] > kMostAccumulators) return {};
    source_.text =
        "#include <backends/cuda/fusion_reduction.hpp>\n#include <backends/cuda/update_functions.hpp>\n"
        "#include <plugrad/sdk/functions.hpp>\n\n"
        "namespace plugrad::cuda {\n\n" +
        functions() + kernel("packs", source_.pack, source_.packs_each) + kernel("singles", 1, source_.singles_each) +
        "\n}  // namespace plugrad::cuda\n";
    return std::move(source_);
  }

 private:
  static constexpr size_t kMostAccumulators = 160;  // bytes per thread; a block's shared memory holds 256 times as many

  const Fusion& fusion() const { return shape_.fusion(); }
  bool reduces() const { return !shape_.reductions().empty(); }
  uint8_t dtype_of(size_t value) const { return shape_.dtype_of(value); }

  // --- Choices.

  bool is_light(size_t most) const {
    const auto is_heavy = [](const plugrad_fusion_instruction& each) { return is_approximated(*op_info(each.opcode)); };
    return fusion().outputs().size() + fusion().inputs() <= most && std::ranges::none_of(fusion().instructions(), is_heavy);
  }

  // Takes the packs of the reduction's own kernel: reduction.hpp.
  void choose_accumulators() {
    source_.reduced_axes = shape_.reduced_axes();
    source_.reduced_dtype = dtype_of(shape_.reductions()[0].argument);
    source_.reductions = static_cast<int>(shape_.reductions().size());
    source_.goes_on = shape_.goes_on();
    source_.pack = static_cast<int>(std::min<size_t>(8, 16 / element_size(source_.reduced_dtype)));
    for (size_t k = 0; k < fusion().outputs().size(); ++k)
      source_.line_outputs |= static_cast<uint32_t>(!shape_.is_whole(fusion().outputs()[k].value)) << k;
    source_.set_bytes[0] = shape_.accumulator_size(shape_.reductions()[0]) * shape_.reductions().size();
    source_.set_bytes[1] = source_.set_bytes[0] * static_cast<size_t>(shape_.packs_along() ? 1 : source_.pack);
    constexpr size_t kOnTheirWay = 4;  // packs
    size_t loads = 0;
    for (size_t i = 0; i < fusion().inputs(); ++i) loads += fusion().values()[i].axes != fusion().all_axes();
    if (!is_light(8)) return;
    source_.packs_each = static_cast<int>(std::max<size_t>(1, kOnTheirWay / std::max<size_t>(1, loads)));
    source_.singles_each = 2 * source_.packs_each;
  }

  // As single kernels do: elementwise.hpp.
  void choose_packs() {
    size_t largest = 1;
    const auto note = [&](size_t value) { largest = std::max(largest, element_size(dtype_of(value))); };
    for (const plugrad_fusion_output& each : fusion().outputs()) note(each.value);
    for (size_t i = 0; i < fusion().inputs(); ++i) note(i);
    source_.pack = static_cast<int>(std::min<size_t>(8, 16 / largest));
    source_.packs_each = is_light(4) ? 2 : 1;
    source_.singles_each = is_light(4) ? 4 : 1;
  }

  // --- Functions: one for each pass over a line (the last pass stores), and one for the outputs of lines.

  std::string functions() const {
    std::string text;
    if (shape_.goes_on()) {
      text += "struct Results {\n";
      for (size_t i = 0; i < shape_.reductions().size(); ++i)
        text += "  " + type_of(dtype_of(shape_.reductions()[i].value)) + " " + result_name(i) + ";\n";
      text += "};\n\n";
    }
    const int last = reduces() ? shape_.storing_pass() : 0;
    const uint32_t all = (1u << fusion().outputs().size()) - 1;
    for (int pass = 0; pass <= last; ++pass) text += function(pass, pass == last ? all & ~source_.line_outputs : 0);
    if (shape_.goes_on() && source_.line_outputs) text += function(shape_.passes(), source_.line_outputs, "OfLine");
    return text;
  }

  std::string function(int pass, uint32_t stored, const std::string& name = {}) const {
    std::string lines;
    size_t made = fusion().inputs();
    for (const plugrad_fusion_instruction& each : fusion().instructions()) {
      const size_t first = made;
      made += each.results;
      if (shape_.reduction_of(first) < 0 && shape_.level(first) <= pass)
        lines += op_info(each.opcode)->shape == OpShape::update ? update(each, first) : computation(each, first);
    }
    for (size_t k = 0; k < fusion().outputs().size(); ++k)
      if (stored >> k & 1) lines += "    " + output_name(k) + " = " + name_of(fusion().outputs()[k].value) + ";\n";
    for (size_t i = 0; i < shape_.reductions().size() && name.empty(); ++i)
      if (const size_t argument = shape_.reductions()[i].argument; shape_.level(argument) == pass)
        lines += "    " + reduced_name(i) + " = " + name_of(argument) + ";\n";
    const size_t outputs = fusion().outputs().size();
    return "struct " + (name.empty() ? pass_name(pass) : name) +
           " {\n  static constexpr int kOutputs = " + std::to_string(outputs) +
           ";\n  static constexpr bool kInOut = false;\n  static constexpr uint32_t kStored = " + std::to_string(stored) +
           ";\n  static constexpr size_t kOperands = " + std::to_string(outputs + fusion().inputs()) + ";\n" +
           (shape_.goes_on() ? "  Results results;\n" : "") + "  __device__ __forceinline__ void operator()(" +
           parameters() + ") const {\n" + lines + "  }\n};\n\n";
  }

  static std::string pass_name(int pass) { return "Pass" + std::to_string(pass); }

  std::string name_of(size_t value) const {
    const int reduction = shape_.reduction_of(value);
    return reduction < 0 ? value_name(value) : "results." + result_name(static_cast<size_t>(reduction));
  }

  std::string parameters() const {
    std::string text;
    for (size_t k = 0; k < fusion().outputs().size(); ++k)
      text += (k ? ", " : "") + type_of(dtype_of(fusion().outputs()[k].value)) + "& " + output_name(k);
    for (size_t i = 0; i < fusion().inputs(); ++i) text += ", const " + type_of(dtype_of(i)) + "& " + value_name(i);
    for (size_t i = 0; i < shape_.reductions().size(); ++i)
      text += ", " + type_of(dtype_of(shape_.reductions()[i].argument)) + "& " + reduced_name(i);
    return text;
  }

  std::string computation(const plugrad_fusion_instruction& each, size_t made) const {
    return "    const " + type_of(dtype_of(made)) + " " + value_name(made) + " = " + result(each, made) + ";\n";
  }

  // The results begin as the old values.
  std::string update(const plugrad_fusion_instruction& each, size_t made) const {
    const auto arguments = fusion().arguments_of(each);
    const std::string type = type_of(dtype_of(made));
    std::string line, operands;
    for (size_t k = 0; k < each.results; ++k) {
      line += "    " + type + " " + value_name(made + k) + " = " + name_of(arguments[k]) + ";\n";
      operands += (k ? ", " : "") + value_name(made + k);
    }
    for (size_t k = each.results; k < arguments.size(); ++k) operands += ", " + name_of(arguments[k]);
    return line + "    " + step(each, type) + "(" + operands + ");\n";
  }

  // The function of an update, with its attributes.
  std::string step(const plugrad_fusion_instruction& each, const std::string& type) const {
    const void* const attributes = fusion().attributes_of(each);
    if (each.opcode == PLUGRAD_OP_DESCENT_STEP) return "DescentStep<" + type + ">()";
    if (each.opcode == PLUGRAD_OP_SGD_STEP) {
      const auto& a = *static_cast<const plugrad_sgd*>(attributes);
      return "SgdStep<" + type + ">(" + numbers({a.momentum, a.weight_decay}) + (a.nesterov ? "true)" : "false)");
    }
    const auto& a = *static_cast<const plugrad_adam*>(attributes);
    return "AdamStep<" + type + ">(" + numbers({a.beta1, a.beta2, a.epsilon, a.weight_decay}) +
           (a.decoupled ? "true)" : "false)");
  }

  // Writes hexadecimal digits, which are exact.
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

  std::string result(const plugrad_fusion_instruction& instruction, size_t made) const {
    std::string arguments;
    for (const uint16_t argument : fusion().arguments_of(instruction))
      arguments += (arguments.empty() ? "widened(" : ", widened(") + name_of(argument) + ")";
    const std::string type = type_of(dtype_of(made));
    switch (instruction.opcode) {
      case PLUGRAD_OP_FILL:
      case PLUGRAD_OP_COPY: return name_of(fusion().arguments_of(instruction)[0]);
      case PLUGRAD_OP_CAST: return "static_cast<" + type + ">(Conversion<" + type + ">()(" + arguments + "))";
      default:
        return "static_cast<" + type + ">(OpFunction<" + std::to_string(instruction.opcode) + ">()(" + arguments + "))";
    }
  }

  // --- Kernels.

  std::string kernel(const char* name, int pack, int each) const {
    std::string types;
    for (const plugrad_fusion_output& output : fusion().outputs()) types += ", " + type_of(dtype_of(output.value));
    for (size_t i = 0; i < fusion().inputs(); ++i) types += ", " + type_of(dtype_of(i));
    for (const FusionShape::Reduction& each_one : shape_.reductions()) types += ", " + type_of(dtype_of(each_one.argument));
    const size_t slots = fusion().outputs().size() + fusion().inputs() + shape_.reductions().size();
    const std::string v = std::to_string(pack), u = std::to_string(each);
    const std::string head = "extern \"C\" __global__ void __launch_bounds__(kBlock) " + std::string(name) +
                             "(const __grid_constant__ " + (reduces() ? "FusionReduction<" : "Grid<") +
                             std::to_string(slots) + "> p) {\n";
    if (!reduces()) return head + "  map_all<Pass0, " + v + ", " + u + types + ">(p, Pass0());\n}\n";
    const std::string using_slots = "  using All = SlotsOf<" + v + types + ">;\n";
    if (!shape_.goes_on())
      return head + using_slots + "  reduce_fusion<" + u + ", All, " + set_of(0, pack) + ">(p, Pass0());\n}\n";
    return head + using_slots + "  each_line(p, [&](const auto& line) {\n    Results results{};\n" + passes(pack, u) +
           (source_.line_outputs ? "    finish_line<SlotsOf<1" + types + ">>(p, line, OfLine{results});\n" : "") +
           "  });\n}\n";
  }

  std::string passes(int pack, const std::string& u) const {
    std::string text;
    for (int pass = 0; pass < shape_.passes(); ++pass) {
      const std::string sums = "sums" + std::to_string(pass);
      text += "    const auto " + sums + " = reduce_line<" + u + ", All, " + set_of(pass, pack) + ">(p, line, " +
              pass_name(pass) + "{results});\n";
      size_t place = 0;
      for (size_t i = 0; i < shape_.reductions().size(); ++i)
        if (shape_.level(shape_.reductions()[i].argument) == pass)
          text += "    results." + result_name(i) + " = " + sums + ".template result<" + std::to_string(place++) + ">();\n";
    }
    if (shape_.storing_pass() == shape_.passes())
      text += "    store_line<" + u + ", All>(p, line, " + pass_name(shape_.passes()) + "{results});\n";
    return text;
  }

  // The type of the accumulators of a pass.
  std::string set_of(int pass, int pack) const {
    const std::string packing = pack == 1 ? "none" : shape_.packs_along() ? "along" : "across";
    const size_t operands = fusion().outputs().size() + fusion().inputs();
    std::string text;
    for (size_t i = 0; i < shape_.reductions().size(); ++i) {
      const FusionShape::Reduction& reduction = shape_.reductions()[i];
      if (shape_.level(reduction.argument) != pass) continue;
      const std::string from = type_of(dtype_of(reduction.argument));
      text += (text.empty() ? "Reduced<" : ", Reduced<") + std::to_string(operands + i) + ", " + output_of(reduction.value) +
              ", " + reducer_of(reduction) + ", " + from + ", Packing::" + packing + ", " + std::to_string(pack) + ">";
    }
    return "SumSetOf<" + text + ">";
  }

  std::string output_of(size_t value) const {
    for (size_t k = 0; k < fusion().outputs().size() && !shape_.goes_on(); ++k)
      if (fusion().outputs()[k].value == value) return std::to_string(k);
    return "kNoOutput";
  }

  std::string reducer_of(const FusionShape::Reduction& reduction) const {
    const std::string from = type_of(dtype_of(reduction.argument));
    if (reduction.opcode == PLUGRAD_OP_SUM) return "Sum<" + type_of(dtype_of(reduction.value)) + ", " + from + ">";
    return (reduction.opcode == PLUGRAD_OP_MAX ? "Max<" : "Min<") + from + ">";
  }

  const FusionShape shape_;
  FusionSource source_;
};

}  // namespace

FusionSource source_of(const plugrad_fusion& fusion) { return Writer(fusion).written(); }

}  // namespace plugrad::cuda
