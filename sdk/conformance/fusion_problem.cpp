#include <sdk/conformance/fusion_problem.hpp>

#include <algorithm>
#include <cmath>

namespace plugrad::conformance {
namespace {

// Returns a space from a list: plugins divide the list's spaces in different ways.
Shape random_space(Random& random) {
  static const std::vector<Shape> kSpaces = {{2},        {63},        {1024},       {5000},     {40000},    {70001},
                                             {3, 5},     {40, 64},    {33, 17},     {64, 100},  {200, 33},  {700, 40},
                                             {7, 3000},  {130, 129},  {65, 1000},   {1100, 60}, {2, 20000}, {3, 4, 5},
                                             {6, 8, 48}, {5, 33, 40}, {2, 3, 4, 50}};
  return kSpaces[static_cast<size_t>(random.below(static_cast<int64_t>(kSpaces.size())))];
}

class Maker {
 public:
  Maker(const plugrad_fusions& offered, uint8_t dtype, const HasKernel& has, Random& random)
      : offered_(offered), dtype_(dtype), has_(has), random_(random) {
    made_.space = random_space(random);
    made_.parts.rank = static_cast<uint16_t>(made_.space.size());
    last_ = 1u << (made_.space.size() - 1);
    all_ = 2 * last_ - 1;
  }

  // The lines of a fusion with a head are only elementwise.
  std::optional<FusionProblem> make_headed() {
    std::vector<const OpInfo*> heads;
    for (const OpInfo& op : kOps)
      if (head_content(op.opcode) & offered_.contents && op.is_for(dtype_) && has_(op.opcode, dtype_)) heads.push_back(&op);
    if (heads.empty()) return {};
    const OpInfo& op = *heads[static_cast<size_t>(random_.below(static_cast<int64_t>(heads.size())))];
    FusionParts::Line head{op.opcode, {}, op.outputs};
    is_headed_ = true;
    draw_head(head);
    if (random_.one_in(4)) set_space({count_of(made_.space)});  // the host merges axes
    for (int64_t i = random_.below(3); i > 0; --i) add_input(random_axes());
    for (int64_t i = random_.below(3); i > 0; --i) add_number(random_.uniform(-3, 3));
    made_.parts.inputs = static_cast<uint16_t>(made_.inputs.size());
    for (size_t k = 0; k < made_.head_inputs(); ++k) head.arguments.push_back(static_cast<uint16_t>(k));
    push(std::move(head), dtype_, 0);
    for (int k = 1; k < op.outputs; ++k)
      made_.parts.values[made_.parts.inputs + static_cast<size_t>(k)].dtype = op.operand_dtype(k, dtype_);
    const int64_t lines = 1 + random_.below(5);
    for (int64_t tries = 0; tries < 40 * lines && made_.parts.lines.size() <= static_cast<size_t>(lines); ++tries)
      add_line();
    add_outputs();
    return std::move(made_);
  }

  FusionProblem make() {
    const int64_t inputs = 1 + random_.below(5);
    add_input(0);
    for (int64_t i = 1; i < inputs; ++i) add_input(random_axes());
    for (int64_t i = random_.below(3); i > 0; --i) add_number(random_.uniform(-3, 3));
    made_.parts.inputs = static_cast<uint16_t>(made_.inputs.size());
    const int64_t lines = random_.one_in(10) ? 40 : 1 + random_.below(14);
    for (int64_t tries = 0; tries < 8 * lines && made_.parts.lines.size() < static_cast<size_t>(lines); ++tries) add_line();
    add_outputs();
    return std::move(made_);
  }

 private:
  void set_space(const Shape& result) {
    made_.space = result;
    made_.parts.rank = static_cast<uint16_t>(result.size());
    last_ = 1u << (result.size() - 1);
    all_ = 2 * last_ - 1;
  }
  void add_head_input(const Shape& shape, bool may_turn) {
    made_.inputs.push_back(random_array(dtype_, shape, {-1, 1}, random_));
    made_.is_immediate.push_back(false);
    made_.parts.values.push_back({dtype_, 0});
    made_.is_turned.push_back(may_turn && random_.one_in(3));
  }
  void add_head_number(double value) {
    add_head_input({}, false);
    made_.inputs.back().set(0, value);
    made_.is_immediate.back() = true;
  }
  int64_t extent() {
    static constexpr int64_t kExtents[] = {2, 3, 8, 17, 40, 64, 70, 130};
    return kExtents[random_.below(8)];
  }

  // Draws the head's operands and attributes.
  void draw_head(FusionParts::Line& head) {
    const int64_t m = extent(), n = extent(), k = random_.one_in(8) ? 1200 : extent(), batches = 2 + random_.below(3);
    const bool is_batched = random_.one_in(3);
    const auto matrix = [&](int64_t rows, int64_t columns) {
      return is_batched ? Shape{batches, rows, columns} : Shape{rows, columns};
    };
    set_space(matrix(m, n));
    made_.head_results.push_back(made_.space);
    switch (head.opcode) {
      case PLUGRAD_OP_MATMUL:
      case PLUGRAD_OP_MATMUL_ADD:
        add_head_input(matrix(m, k), true);
        add_head_input(matrix(k, n), true);
        if (head.opcode == PLUGRAD_OP_MATMUL_ADD) add_head_input(made_.space, true);
        return;
      case PLUGRAD_OP_ATTENTION: {
        const int64_t width = extent();
        add_head_input(matrix(m, width), false);
        add_head_input(matrix(k, width), false);
        add_head_input(matrix(k, n), false);
        if (random_.one_in(2)) add_head_number(static_cast<double>(random_.below(3)) - 1);
        else add_head_input(matrix(m, k), false);
        made_.head_results.push_back(matrix(m, 1));
        return set_attributes(head, plugrad_attention{sizeof(plugrad_attention), random_.one_in(2), 0.3});
      }
      case PLUGRAD_OP_SOFTMAX:
      case PLUGRAD_OP_LOG_SOFTMAX: {
        add_head_input(made_.space, false);
        const auto axis = static_cast<int32_t>(random_.below(static_cast<int64_t>(made_.space.size())));
        return set_attributes(head, plugrad_axis{sizeof(plugrad_axis), axis});
      }
      default:  // LAYER_NORM, RMS_NORM
        set_space({m, n});
        made_.head_results = {made_.space, {m}};
        add_head_input(made_.space, false);
        add_head_input({n}, false);
        if (head.opcode == PLUGRAD_OP_LAYER_NORM) made_.head_results.push_back({m}), add_head_input({n}, false);
        return set_attributes(head, plugrad_norm{sizeof(plugrad_norm), 0, 1e-5});
    }
  }

  unsigned random_axes() {
    const unsigned outer = last_ - 1;
    const unsigned forms[] = {0, 0, 0, last_, outer, all_, static_cast<unsigned>(random_.below(all_ + 1))};
    return forms[random_.below(7)];
  }

  void add_input(unsigned axes) {
    const Shape shape = made_.shape_of(axes);
    made_.inputs.push_back(random_.one_in(4) ? sprinkled_array(dtype_, shape, {-3, 3}, 50, random_)
                                             : random_array(dtype_, shape, {-3, 3}, random_));
    made_.is_immediate.push_back(false);
    made_.parts.values.push_back({dtype_, static_cast<uint8_t>(axes)});
  }

  void add_number(double value) {
    Array number(dtype_, {});
    number.set(0, is_floating(dtype_) ? value : std::floor(value));
    made_.inputs.push_back(std::move(number));
    made_.is_immediate.push_back(true);
    made_.parts.values.push_back({dtype_, static_cast<uint8_t>(all_)});
  }

  // Returns a value of this dtype that an instruction may read; the value's axes contain `axes`.
  std::optional<uint16_t> pick(uint8_t dtype, unsigned axes) {
    std::vector<uint16_t> fitting;
    for (size_t v = 0; v < made_.parts.values.size(); ++v)
      if (made_.parts.values[v].dtype == dtype && !(axes & ~made_.parts.values[v].axes) && may_read(v))
        fitting.push_back(static_cast<uint16_t>(v));
    if (fitting.empty()) return {};
    // Mostly a late value, to form chains.
    const auto n = static_cast<int64_t>(fitting.size());
    const bool late = random_.one_in(2);
    return fitting[static_cast<size_t>(late ? n - 1 - random_.below(std::min<int64_t>(n, 3)) : random_.below(n))];
  }

  // Whether an instruction may read the value: the result of a reduction only if the device's fusions allow it (ROWS).
  bool may_read(size_t value) const {
    if (value < made_.head_inputs() || made_.is_beside_space(value)) return false;
    const unsigned axes = made_.parts.values[value].axes;
    if (value < made_.parts.inputs || !axes) return true;
    return goes_on(axes);
  }
  bool goes_on(unsigned axes) const {
    uint64_t row = 1;
    for (size_t d = 0; d < made_.space.size(); ++d)
      if (axes >> d & 1) row *= static_cast<uint64_t>(made_.space[d]);
    return offered_.contents & PLUGRAD_FUSION_ROWS && axes == last_ && last_ != all_ && row <= offered_.longest_row;
  }

  void add_line() {
    const OpInfo& op = kOps[static_cast<size_t>(random_.below(static_cast<int64_t>(std::size(kOps))))];
    if (op.shape == OpShape::update) return is_headed_ ? void() : add_update(op);
    if (op.shape == OpShape::reduction) return is_headed_ ? void() : add_reduction(op);
    if (op.opcode == PLUGRAD_OP_CAST) return add_cast();
    const bool computes = op.shape == OpShape::elementwise || op.opcode == PLUGRAD_OP_COPY;
    if (!computes || !op.is_for(dtype_) || !has_(op.opcode, dtype_)) return;
    const bool on_rows = !is_headed_ && last_ != all_ && goes_on(last_) && random_.one_in(4);
    FusionParts::Line line{op.opcode, {}};
    for (int k = op.outputs; k < op.operand_count(); ++k) {
      const std::optional<uint16_t> value = pick(op.operand_dtype(k, dtype_), on_rows ? last_ : 0);
      if (!value || (op.opcode == PLUGRAD_OP_POW && k == 2 && !is_number(*value))) return;
      line.arguments.push_back(*value);
    }
    const bool only_numbers = std::ranges::all_of(line.arguments, [&](uint16_t v) { return is_number(v); });
    if (only_numbers) return;
    push(std::move(line), op.operand_dtype(0, dtype_), on_rows ? last_ : 0);
  }

  bool is_number(uint16_t value) const { return value < made_.parts.inputs && made_.is_immediate[value]; }

  void add_cast() {
    const uint8_t others[] = {PLUGRAD_F32, PLUGRAD_F64, PLUGRAD_BF16, PLUGRAD_I64, PLUGRAD_BOOL};
    const uint8_t other = others[random_.below(5)];
    const bool back = random_.one_in(2);
    const std::optional<uint16_t> value = pick(back ? other : dtype_, 0);
    if (!value || other == dtype_ || is_number(*value) || !has_(PLUGRAD_OP_CAST, other)) return;
    push({PLUGRAD_OP_CAST, {*value}}, back ? dtype_ : other, 0);
  }

  void add_reduction(const OpInfo& op) {
    if (!(offered_.contents & PLUGRAD_FUSION_REDUCTIONS) || op.opcode == PLUGRAD_OP_ARGMAX) return;
    if (!op.is_for(dtype_) || !has_(op.opcode, dtype_)) return;
    const unsigned forms[] = {last_, last_, last_ - 1, all_};
    const unsigned axes = forms[random_.below(4)];
    const std::optional<uint16_t> value = pick(dtype_, 0);
    if (!axes || !value || made_.parts.values[*value].axes) return;
    const bool are_alike = offered_.contents & PLUGRAD_FUSION_ALIKE;
    if (are_alike && reduced_ && reduced_ != axes) return;
    reduced_ = axes;
    push({op.opcode, {*value}}, op.operand_dtype(0, dtype_), axes);
  }

  // Adds an update of inputs; its results then have the same memory as the inputs.
  void add_update(const OpInfo& op) {
    if (!(offered_.contents & PLUGRAD_FUSION_UPDATES) || !op.is_for(dtype_) || !has_(op.opcode, dtype_)) return;
    FusionParts::Line line{op.opcode, {}, op.outputs};
    for (int k = 0; k <= op.outputs; ++k) {
      const std::optional<uint16_t> value = pick(dtype_, 0);
      const bool is_gradient = k == op.outputs;
      if (!value || (is_gradient ? is_number(*value) : made_.parts.values[*value].axes)) return;
      line.arguments.push_back(*value);
    }
    for (int k = 1; k < op.inputs; ++k) {
      const std::optional<uint16_t> value = pick(dtype_, all_);
      if (!value) return;
      line.arguments.push_back(*value);
    }
    const uint32_t kind = random_.one_in(2);  // nesterov, decoupled
    if (op.opcode == PLUGRAD_OP_SGD_STEP) set_attributes(line, plugrad_sgd{sizeof(plugrad_sgd), kind, 0.9, 0.01});
    if (op.opcode == PLUGRAD_OP_ADAM_STEP)
      set_attributes(line, plugrad_adam{sizeof(plugrad_adam), kind, 0.9, 0.999, 1e-8, 0.01});
    push(std::move(line), dtype_, 0);
  }

  template <class Attributes> static void set_attributes(FusionParts::Line& line, const Attributes& attributes) {
    const auto* const from = reinterpret_cast<const std::byte*>(&attributes);
    line.attributes.assign(from, from + sizeof attributes);
  }

  void push(FusionParts::Line line, uint8_t dtype, unsigned axes) {
    for (int k = 0; k < line.results; ++k) made_.parts.values.push_back({dtype, static_cast<uint8_t>(axes)});
    made_.parts.lines.push_back(std::move(line));
  }

  // Stores the values that no instruction reads, and some of the remaining values; some outputs overlap inputs.
  void add_outputs() {
    FusionParts& parts = made_.parts;
    std::vector<bool> is_read(parts.values.size()), is_taken(parts.inputs);
    for (const FusionParts::Line& line : parts.lines)
      for (const uint16_t value : line.arguments) is_read[value] = true;
    for (size_t v = parts.inputs; v < parts.values.size(); ++v) {
      if ((is_read[v] && !random_.one_in(4)) || parts.inputs + parts.outputs.size() == PLUGRAD_FUSION_OPERANDS) continue;
      plugrad_fusion_output output{static_cast<uint16_t>(v), PLUGRAD_FUSION_NONE};
      const auto first = static_cast<uint16_t>(made_.head_inputs());
      for (uint16_t i = first; i < parts.inputs && !made_.is_beside_space(v) && random_.one_in(3); ++i) {
        const bool fits = parts.values[i].dtype == parts.values[v].dtype && parts.values[i].axes == parts.values[v].axes;
        if (!fits || is_taken[i] || made_.is_immediate[i]) continue;
        output.over = i;
        is_taken[i] = true;
        break;
      }
      parts.outputs.push_back(output);
    }
  }

  const plugrad_fusions& offered_;
  const uint8_t dtype_;
  const HasKernel& has_;
  Random& random_;
  FusionProblem made_;
  unsigned last_ = 1, all_ = 1, reduced_ = 0;  // reduced_: by the last reduction
  bool is_headed_ = false;
};

}  // namespace

Shape FusionProblem::shape_of(unsigned axes) const {
  Shape shape = space;
  for (size_t d = 0; d < shape.size(); ++d)
    if (axes >> d & 1) shape[d] = 1;
  return shape;
}

void FusionProblem::cut(size_t lines) {
  parts.lines.resize(lines);
  size_t values = parts.inputs;
  for (const FusionParts::Line& line : parts.lines) values += line.results;
  parts.values.resize(values);
  std::erase_if(parts.outputs, [&](const plugrad_fusion_output& each) { return each.value >= values; });
  const auto last = static_cast<uint16_t>(values - 1);
  if (std::ranges::none_of(parts.outputs, [&](const plugrad_fusion_output& each) { return each.value == last; }))
    parts.outputs.push_back({last, PLUGRAD_FUSION_NONE});
}

std::optional<FusionProblem> random_headed_fusion(const plugrad_fusions& offered, uint8_t dtype, const HasKernel& has,
                                                  Random& random) {
  for (;;) {
    std::optional<FusionProblem> made = Maker(offered, dtype, has, random).make_headed();
    if (!made || made->parts.lines.size() > 1) return made;
  }
}

FusionProblem random_fusion(const plugrad_fusions& offered, uint8_t dtype, const HasKernel& has, Random& random) {
  for (;;) {
    FusionProblem made = Maker(offered, dtype, has, random).make();
    if (!made.parts.lines.empty() && !made.parts.outputs.empty()) return made;
  }
}

std::string text_of(const FusionProblem& problem) {
  std::string text;
  size_t made = problem.parts.inputs;
  for (const FusionParts::Line& line : problem.parts.lines) {
    text += (text.empty() ? "" : ", ") + std::to_string(made) + " = " + op_info(line.opcode)->name;
    for (const uint16_t value : line.arguments) text += " " + std::to_string(value);
    made += line.results;
  }
  return text + " in " + text_of(problem.space);
}

}  // namespace plugrad::conformance
