#include <core/runtime/dispatch/dense_copies.hpp>

#include <core/runtime/dispatch/dense.hpp>

#include <algorithm>
#include <optional>

namespace plugrad {
namespace {
void copy_view(DeviceState& device, const Operand& to, const Operand& from) {
  run(Op::COPY, {to}, {from});
  ++device.layout_copies;
}

Dense filled(DeviceState& device, plugrad_view like, const plugrad_view& value) {
  like.dtype = value.dtype;
  Dense made = make_dense(device, like, PLUGRAD_OP_FILL);
  run(Op::FILL, {made.operand()}, {Immediate{value}});
  ++device.layout_copies;
  return made;
}

enum class Immediates { keep, broadcast, full };
struct Plan {
  bool dense;  // all operands with memory become dense
  Immediates immediates;
};

// Returns whether a number stands for an operand of more elements. Sets their shape: that of all operands of an elementwise
// op, or that of the scores of attention.
bool stands_for_many(const OpCall& call, plugrad_view& shape) {
  if (is_elementwise(call.opcode)) shape = *call.views[0];
  if (!is_attention(call.opcode)) return is_elementwise(call.opcode);
  const plugrad_view* const* query = call.views + call.outputs + (call.opcode == PLUGRAD_OP_ATTENTION_BACKWARD);
  shape = *query[0];
  shape.shape[shape.rank - 1] = query[1]->shape[shape.rank - 2];
  set_dense(shape, 1);
  return true;
}

// The operands of a call, replaced according to a plan.
class Replacement {
 public:
  Replacement(const OpCall& call, Plan plan) : call_(call), plan_(plan), is_many_(stands_for_many(call, shape_)) {}

  // The layout class of the replaced call.
  uint16_t layout() const {
    uint16_t bits = 0;
    for (int i = 0; i < call_.operands(); ++i) bits |= planned_layout(*call_.views[i]);
    return bits;
  }

  OpCall apply(DeviceState& device) {
    for (int i = 0; i < call_.operands(); ++i) replace(device, i);
    OpCall replaced = call_;
    replaced.views = views_;
    replaced.storages = storages_;
    return replaced;
  }

  void copy_back(DeviceState& device) {
    for (int i = 0; i < call_.outputs; ++i)
      if (made_[i]) copy_view(device, {*call_.views[i], call_.storages[i]}, made_[i]->operand());
  }

 private:
  uint16_t planned_layout(const plugrad_view& v) const {
    if (!(v.layout & PLUGRAD_IMMEDIATE)) return plan_.dense ? v.count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0 : v.layout;
    if (plan_.immediates == Immediates::keep) return PLUGRAD_IMMEDIATE;
    if (!is_many_) return 0;
    const uint16_t wide = shape_.count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0;
    return plan_.immediates == Immediates::broadcast ? wide | PLUGRAD_STRIDED | PLUGRAD_BROADCAST : wide;
  }

  void replace(DeviceState& device, int i) {
    const plugrad_view& v = *call_.views[i];
    views_[i] = &v;
    storages_[i] = call_.storages[i];
    if (v.layout & PLUGRAD_IMMEDIATE) {
      if (plan_.immediates == Immediates::keep) return;
      made_[i] = memory_for(device, v);
    } else {
      if (!plan_.dense || !(v.layout & ~PLUGRAD_WIDE_INDEX)) return;
      made_[i] = make_dense(device, v, call_.opcode);
      if (i >= call_.outputs || is_in_out(call_.opcode, i)) copy_view(device, made_[i]->operand(), {v, call_.storages[i]});
    }
    views_[i] = &made_[i]->view;
    storages_[i] = made_[i]->storage.get();
  }

  // Stores an immediate in memory.
  Dense memory_for(DeviceState& device, const plugrad_view& value) const {
    if (is_many_ && plan_.immediates == Immediates::full) return filled(device, shape_, value);
    Dense one = filled(device, value, value);
    if (is_many_) broadcast(one.view, shape_);
    return one;
  }

  static void broadcast(plugrad_view& one, const plugrad_view& to) {
    one.rank = to.rank;
    one.count = to.count;
    std::copy_n(to.shape, to.rank, one.shape);
    std::fill_n(one.strides, to.rank, 0);
    one.layout = PLUGRAD_STRIDED | PLUGRAD_BROADCAST | (to.count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0);
  }

  const OpCall& call_;
  Plan plan_;
  plugrad_view shape_;  // of an operand for which a number stands
  bool is_many_;        // a number stands for several elements
  std::optional<Dense> made_[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* views_[PLUGRAD_MAX_OPERANDS];
  Storage* storages_[PLUGRAD_MAX_OPERANDS];
};
}  // namespace

bool run_on_copies(DeviceState& device, const OpCall& call, uint16_t layout) {
  const Op op = static_cast<Op>(call.opcode);
  // FILL, COPY and CAST support every layout class; IOTA's inputs are immediates by definition.
  if (op == Op::FILL || op == Op::COPY || op == Op::CAST || op == Op::IOTA || !(layout & ~PLUGRAD_WIDE_INDEX)) return false;
  constexpr Plan kPlans[] = {
      {false, Immediates::broadcast}, {true, Immediates::keep}, {true, Immediates::broadcast}, {true, Immediates::full}};
  for (const Plan& plan : kPlans) {
    Replacement replacement(call, plan);
    const uint16_t wanted = replacement.layout();
    if (wanted == layout) continue;
    const plugrad_kernel* kernel = device.kernel(call.op(), call.key(), wanted);
    if (!kernel) continue;
    if (!run_or_decline(device, kernel, replacement.apply(device))) continue;
    replacement.copy_back(device);
    return true;
  }
  return false;
}

}  // namespace plugrad
