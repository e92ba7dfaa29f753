#include <sdk/conformance/arrangement.hpp>

#include <algorithm>

namespace plugrad::conformance {
namespace {

constexpr Form kStrided[] = {Form::stepped, Form::padded, Form::transposed, Form::swapped, Form::channels_last};
constexpr Form kNegative[] = {Form::reversed, Form::reversed_last};
constexpr Form kBroadcast[] = {Form::broadcast_first, Form::broadcast_last, Form::broadcast_all};

// Lists arrangements of an op's operands.
class Arranger {
 public:
  Arranger(const OpRow& row, const Question& question) : row_(row), op_(*question.op), question_(question) {}

  Arrangement plain() const {
    Arrangement a;
    a.operands.resize(op_.outputs + op_.inputs);
    for (int i = 0; i < op_.inputs; ++i)
      if (row_.only_immediates()) a.operands[op_.outputs + i].form = Form::immediate;
    return a;
  }
  int operands() const { return op_.outputs + op_.inputs; }
  bool is_output(int operand) const { return operand < op_.outputs; }
  bool has(uint32_t set, int operand) const { return !is_output(operand) && set >> (operand - op_.outputs) & 1; }
  bool may_be(int operand, Form form) const {
    if (row_.only_immediates() && !is_output(operand)) return form == Form::immediate;
    if (form == Form::immediate) return has(op_.immediate_inputs(), operand);
    if (form == Form::channels_last) return is_on_images(op_);
    if (!is_broadcast(form)) return true;
    return !is_output(operand) && (row_.expands() || !has(op_.scalar_inputs(), operand));
  }

  // Adds an arrangement with this placement for all operands, where allowed, then an arrangement for each operand alone.
  void add_all_and_each(Placement placement, std::vector<Arrangement>& list, bool for_large = false) const {
    Arrangement all = plain();
    for (int k = 0; k < operands(); ++k) put(all, k, placement);
    all.for_large = for_large;
    list.push_back(all);
    for (int k = 0; k < operands() && operands() > 1; ++k) {
      Arrangement one = plain();
      if (put(one, k, placement)) list.push_back(one);
    }
  }
  void add_in_place(Placement placement, std::vector<Arrangement>& list) const {
    for (int i = 0; op_.works_in_place() && op_.outputs == 1 && i < op_.inputs; ++i) {
      if (question_.in(i) != question_.out() || has(op_.scalar_inputs(), op_.outputs + i) || row_.only_immediates())
        continue;
      if (question_.accumulates()) continue;  // the kernel would read the output twice, with two meanings
      Arrangement a = plain();
      a.in_place = i;
      for (int k = 0; k < operands(); ++k) put(a, k, placement);
      list.push_back(a);
    }
  }
  void add_immediates(std::vector<Arrangement>& list) const {
    const uint32_t all = (1u << op_.inputs) - 1;
    for (uint32_t set = 1; set <= all; ++set) {
      const bool some_memory = set != all || op_.scalar_inputs() == all;
      if ((set & ~op_.immediate_inputs()) || !some_memory) continue;
      Arrangement a = plain();
      for (int i = 0; i < op_.inputs; ++i)
        if (set >> i & 1) a.operands[op_.outputs + i].form = Form::immediate;
      a.for_large = set == 1;
      list.push_back(a);
    }
  }
  Arrangement anyhow(Random& random) const {
    Arrangement a = plain();
    int memory = 0;
    for (int k = operands(); k-- > 0;) {
      Placement placement{static_cast<Form>(random.below(11)), random.one_in(2)};
      const bool last_input = k == op_.outputs && memory == 0 && op_.scalar_inputs() != (1u << op_.inputs) - 1;
      if (last_input && placement.form == Form::immediate) placement.form = Form::dense;
      if (!may_be(k, placement.form)) placement.form = plain().operands[k].form;
      a.operands[k] = placement;
      memory += !is_output(k) && placement.form != Form::immediate;
    }
    return a;
  }

 private:
  bool put(Arrangement& a, int operand, Placement placement) const {
    if (!may_be(operand, placement.form)) {
      a.operands[operand].unaligned = placement.unaligned;
      return false;
    }
    a.operands[operand] = placement;
    return true;
  }
  const OpRow& row_;
  const OpInfo& op_;
  const Question& question_;
};

Shape row_major_with(const Shape& shape, int64_t step, int64_t gap) {
  Shape strides(shape.size());
  int64_t stride = step;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
    if (axis + 1 == shape.size()) stride += gap;
  }
  return strides;
}

Shape exchanged(const Shape& shape, std::vector<size_t> order) {  // order: axes from the slowest to the fastest
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= shape[order[i]]) strides[order[i]] = stride;
  return strides;
}

Shape with_zeros(const Shape& shape, Form form) {
  Shape kept = shape;
  std::vector<size_t> longer;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] > 1) longer.push_back(axis);
  if (longer.empty()) return row_major(shape);
  if (form == Form::broadcast_first) longer = {longer.front()};
  if (form == Form::broadcast_last) longer = {longer.back()};
  for (const size_t axis : longer) kept[axis] = 1;
  Shape strides = row_major(kept);
  for (const size_t axis : longer) strides[axis] = 0;
  return strides;
}

}  // namespace

bool is_on_images(const OpInfo& op) {
  return op.shape == OpShape::window || op.opcode == PLUGRAD_OP_CONVOLUTION || op.opcode == PLUGRAD_OP_CONVOLUTION_BIAS;
}

bool is_broadcast(Form form) {
  return form == Form::broadcast_first || form == Form::broadcast_last || form == Form::broadcast_all;
}

const char* form_name(Form form) {
  constexpr const char* kNames[] = {"dense",          "stepped",       "padded",        "transposed",
                                    "swapped",        "reversed",      "reversed_last", "broadcast_first",
                                    "broadcast_last", "broadcast_all", "immediate",     "channels_last"};
  return kNames[static_cast<int>(form)];
}

uint16_t column_bits(Column column) {
  constexpr uint16_t kBits[kColumns] = {0,
                                        PLUGRAD_STRIDED,
                                        PLUGRAD_STRIDED | PLUGRAD_BROADCAST,
                                        PLUGRAD_STRIDED | PLUGRAD_NEGATIVE,
                                        PLUGRAD_IMMEDIATE,
                                        PLUGRAD_UNALIGNED,
                                        PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_WIDE_INDEX};
  return kBits[static_cast<int>(column)];
}

Shape strides_of(const Shape& shape, Form form) {
  Shape strides;
  std::vector<size_t> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  switch (form) {
    case Form::stepped: return row_major_with(shape, 2, 0);
    case Form::padded: return row_major_with(shape, 1, 3);
    case Form::transposed: std::reverse(order.begin(), order.end()); return exchanged(shape, order);
    case Form::swapped:
      if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
      return exchanged(shape, order);
    case Form::channels_last:
      if (order.size() > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
      return exchanged(shape, order);
    case Form::reversed:
      strides = row_major(shape);
      for (int64_t& s : strides) s = -s;
      return strides;
    case Form::reversed_last:
      strides = row_major(shape);
      if (!strides.empty()) strides.back() = -strides.back();
      return strides;
    case Form::broadcast_first:
    case Form::broadcast_last:
    case Form::broadcast_all: return with_zeros(shape, form);
    default: return row_major(shape);
  }
}

Array seen_through(const Array& array, Form form) {
  if (!is_broadcast(form) && form != Form::immediate) return array;
  Array seen = array;
  const Shape dense = row_major(array.shape());
  const Shape zeros = with_zeros(array.shape(), form);
  Walk walk(array.shape());
  for (int64_t i = 0; i < array.count(); ++i, walk.next()) {
    int64_t from = 0;
    for (size_t axis = 0; axis < dense.size() && form != Form::immediate; ++axis)
      if (zeros[axis] != 0) from += walk.index()[axis] * dense[axis];
    std::copy_n(array.element(from), element_size(array.dtype()), seen.element(i));
  }
  return seen;
}

std::vector<Arrangement> arrangements(Column column, const OpRow& row, const Question& question, Random& random) {
  const Arranger arranger(row, question);
  std::vector<Arrangement> list;
  switch (column) {
    case Column::dense:
      list.push_back(arranger.plain());
      list.back().for_large = true;
      arranger.add_in_place({}, list);
      break;
    case Column::strided:
      for (const Form form : kStrided)
        arranger.add_all_and_each({form, false}, list, form == Form::transposed || form == Form::channels_last);
      arranger.add_in_place({Form::stepped, false}, list);
      break;
    case Column::broadcast:
      for (const Form form : kBroadcast) arranger.add_all_and_each({form, false}, list, form == Form::broadcast_last);
      break;
    case Column::negative:
      for (const Form form : kNegative) arranger.add_all_and_each({form, false}, list, form == Form::reversed);
      arranger.add_in_place({Form::reversed, false}, list);
      break;
    case Column::immediate: arranger.add_immediates(list); break;
    case Column::offset:
      arranger.add_all_and_each({Form::dense, true}, list, true);
      arranger.add_in_place({Form::dense, true}, list);
      break;
    case Column::mixed:
      for (int i = 0; i < 8; ++i) list.push_back(arranger.anyhow(random));
      list.push_back(arranger.plain());
      break;
  }
  return list;
}

}  // namespace plugrad::conformance
