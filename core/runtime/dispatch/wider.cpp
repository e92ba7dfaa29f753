#include <core/runtime/dispatch/wider.hpp>

#include <core/runtime/dispatch/dense.hpp>

#include <optional>

namespace plugrad {
namespace {
// The dtype for accumulating elements of a dtype; the dtype itself if it has no wider accumulator.
uint8_t wider(uint8_t dtype) {
  const DTypeInfo* info = dtype_info(dtype);
  return info ? info->accumulator : dtype;
}

// Whether the device converts between the dtypes, in any number of steps.
bool converts(DeviceState& device, uint8_t to, uint8_t from);

// The dtype between the two steps of a conversion, or 0. Elements of the narrow dtype are exact in it.
uint8_t stopover(DeviceState& device, uint8_t to, uint8_t from) {
  for (const uint8_t between : {wider(from), wider(to)})
    if (between != from && between != to && converts(device, between, from) && converts(device, to, between)) return between;
  return 0;
}

bool converts(DeviceState& device, uint8_t to, uint8_t from) {
  plugrad_view out{}, in{};
  out.dtype = to;
  in.dtype = from;
  const plugrad_view* views[] = {&out, &in};
  const OpCall cast{PLUGRAD_OP_CAST, 1, 1, views, nullptr, nullptr};
  return device.kernel(cast.op(), to, 0) || stopover(device, to, from);
}

void convert(const Operand& to, const Operand& from) { run(Op::CAST, {to}, {from}); }

bool convert_in_steps(DeviceState& device, const OpCall& call) {
  const plugrad_view &to = *call.views[0], &from = *call.views[1];
  const uint8_t dtype = stopover(device, to.dtype, from.dtype);
  if (!dtype) return false;
  plugrad_view like = to;
  like.dtype = dtype;
  const Dense between = make_dense(device, like, call.opcode);
  convert(between.operand(), {from, call.storages[1]});
  convert({to, call.storages[0]}, between.operand());
  return true;
}

// The operands of a call, converted where the op needs them in the wider dtype.
class Widened {
 public:
  Widened(const OpCall& call, const OpInfo& op, uint8_t dtype) : call_(call) {
    for (int i = 0; i < call.operands(); ++i) {
      made_[i].view = *call.views[i];
      const uint8_t wide = op.operand_dtype(i, dtype);
      if (made_[i].view.dtype == call.key() && wide) made_[i].view.dtype = wide;
      views_[i] = &made_[i].view;
      storages_[i] = call.storages[i];
    }
  }

  // The call in the wider dtype. Before `convert_inputs` its operands have no memory.
  OpCall call() const {
    OpCall wide = call_;
    wide.views = views_;
    wide.storages = storages_;
    return wide;
  }
  // The layout class of the call once its operands are dense.
  uint16_t layout() const {
    uint16_t bits = 0;
    for (int i = 0; i < call_.operands(); ++i)
      bits |= !is_converted(i) ? call_.views[i]->layout : call_.views[i]->count > INT32_MAX ? PLUGRAD_WIDE_INDEX : 0;
    return bits;
  }

  void convert_inputs(DeviceState& device) {
    for (int i = 0; i < call_.operands(); ++i) {
      if (!is_converted(i)) continue;
      made_[i] = make_dense(device, made_[i].view, call_.opcode);
      storages_[i] = made_[i].storage.get();
      if (i >= call_.outputs || is_in_out(call_.opcode, i))
        convert(made_[i].operand(), {*call_.views[i], call_.storages[i]});
    }
  }
  void convert_outputs() {
    for (int i = 0; i < call_.outputs; ++i)
      if (is_converted(i)) convert({*call_.views[i], call_.storages[i]}, made_[i].operand());
  }

 private:
  // An immediate needs no conversion: it holds its value in the widest type.
  bool is_converted(int i) const {
    return made_[i].view.dtype != call_.views[i]->dtype && !(call_.views[i]->layout & PLUGRAD_IMMEDIATE);
  }

  const OpCall& call_;
  Dense made_[PLUGRAD_MAX_OPERANDS];
  const plugrad_view* views_[PLUGRAD_MAX_OPERANDS];
  Storage* storages_[PLUGRAD_MAX_OPERANDS];
};
}  // namespace

bool run_wider(DeviceState& device, const OpCall& call) {
  const OpInfo* op = op_info(call.opcode);
  const uint8_t dtype = wider(call.key());
  if (!op || local().short_of_memory) return false;
  if (call.opcode == PLUGRAD_OP_CAST) return convert_in_steps(device, call);
  // A number in [0, 1) may round to 1.
  if (dtype == call.key() || !op->is_for(dtype) || call.opcode == PLUGRAD_OP_UNIFORM) return false;
  if (!converts(device, dtype, call.key()) || !converts(device, call.key(), dtype)) return false;
  Widened wide(call, *op, dtype);
  if (!device.kernel(wide.call().op(), dtype, wide.layout()) && !device.kernel(wide.call().op(), dtype, 0)) return false;
  wide.convert_inputs(device);
  if (!run_general(device, wide.call(), wide.layout())) return false;
  wide.convert_outputs();
  ++device.widened;
  return true;
}

}  // namespace plugrad
