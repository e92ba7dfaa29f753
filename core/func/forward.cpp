#include <core/func/forward.hpp>

#include <core/autograd/node.hpp>
#include <core/autograd/rule.hpp>
#include <core/tensor/reach.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/factories.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace plugrad::func {
namespace {
using Held = std::shared_ptr<Forward>;

bool is_dense_whole(const Tensor& x) {
  const plugrad_view& v = view_of(x);
  return is_dense(v) && static_cast<uint64_t>(v.count) * dtype_size(v.dtype) >= storage_of(x)->size;
}
Tensor dense_or_copy(const Tensor& x) { return dense(plugrad::ungraphed(x)); }

[[noreturn]] void throw_no_rule(const std::string& what) {
  throw Error(Code::unsupported,
              "[jvp] " + what + " has no rule in forward mode: use reverse mode (vjp, jacrev) for this function");
}

void copy_into(const Tensor& to, const Tensor& from) { plugrad::run(Op::COPY, {operand(to)}, {operand(from)}); }
void fill_zeros(const Tensor& x) { plugrad::run(Op::FILL, {operand(x)}, {immediate(dtype_of(x), 0, 0)}); }

// All elements of a storage, in one axis of it or of memory with the same layout.
plugrad_view flat(const Storage& layout, const Storage& memory, uint64_t base, uint8_t dtype) {
  const uint64_t alignment = memory.device->info.alignment;
  plugrad_view v = dense_view({static_cast<int64_t>(layout.size / dtype_size(dtype))}, dtype, alignment);
  v.buffer = memory.buffer;
  v.offset = memory.offset + base;
  set_layout(v, alignment);
  return v;
}

// A view of a stand-in's memory in place of a view of the stand-in.
plugrad_view moved(const plugrad_view& v, const Storage& stand_in, Storage& memory, uint64_t base) {
  plugrad_view out = v;
  out.buffer = memory.buffer;
  out.offset = memory.offset + base + (v.offset - stand_in.offset);
  set_layout(out, memory.device->info.alignment);
  return out;
}
}  // namespace

// --- Pairs and their parts.

Tensor Forward::paired(const Tensor& x, const Tensor& direction) {
  const bool alike = !direction.defined() || x.strides() == direction.strides();
  const Tensor value = alike ? x : dense_or_copy(x);
  plugrad_view v = view_of(value);
  const Reach reach = v.count ? reach_of(v, "jvp") : Reach{};
  const auto low = static_cast<uint64_t>(-reach.below);
  Ref<Storage> storage = allocate(device_of(x), 0, 0);
  storage->size = static_cast<uint64_t>(reach.above - reach.below);
  storage->made_under = id;
  v.buffer = storage->buffer;
  v.offset = storage->offset + low;
  set_layout(v, device_of(x).info.alignment);
  StandIn made{.transform = shared_from_this(),
               .value = Ref<Storage>::share(storage_of(value)),
               .base = view_of(value).offset - storage_of(value)->offset - low,
               .is_borrowed = true};
  if (direction.defined()) {
    const Tensor along = alike ? direction : dense_or_copy(direction);
    made.tangent = Ref<Storage>::share(storage_of(along));
    made.tangent_base = view_of(along).offset - storage_of(along)->offset - low;
  }
  stand_ins::set(*storage, std::move(made));
  return tensor_over(*storage, v);
}

Tensor Forward::value_of(const Tensor& y) const {
  const StandIn* const in = behind(storage_of(y));
  return in ? tensor_over(*in->value, moved(view_of(y), *storage_of(y), *in->value, in->base)) : plugrad::ungraphed(y);
}

Tensor Forward::tangent_of(const Tensor& y) const {
  const StandIn* const in = behind(storage_of(y));
  if (!in || !in->tangent || !is_inexact(dtype_of(y))) return {};
  return tensor_over(*in->tangent, moved(view_of(y), *storage_of(y), *in->tangent, in->tangent_base));
}

Tensor Forward::pair(const Tensor& x, const Tensor& direction) {
  static constexpr auto kRule =
      rule("jvp", gradient<kPayload>([](const Tensor& grad, const Held& forward) { return forward->tangent(grad); }),
           gradient<kPayload>([](const Tensor& grad, const Held& forward) { return forward->primal(grad); }));
  static constexpr auto kConstantRule =
      rule("jvp", gradient<kPayload>([](const Tensor& grad, const Held& forward) { return forward->tangent(grad); }));
  const Tensor both[] = {x, direction};
  if (TensorTransform* const inner = transform_of(both); inner && inner->id > id)
    return inner->within({x, direction}, [&](const auto& all) {
      return all[0].defined() ? pair(all[0], all[1]) : pair(zeros_like(all[1]), all[1]);
    });
  if (!direction.defined()) return differentiable(kConstantRule, shared_from_this(), paired(x, direction), x);
  return differentiable(kRule, shared_from_this(), paired(x, direction), x, direction);
}

Tensor Forward::primal(const Tensor& y) {
  static constexpr auto kRule = rule("jvp", gradient<kPayload>([](const Tensor& grad, const Held& forward) {
                                       return forward->pair(zeros_like(grad), grad);
                                     }));
  if (TensorTransform* const inner = transform_of({&y, 1}); inner && inner->id > id)
    return inner->within({y}, [&](const auto& all) { return primal(all[0]); });
  return behind(storage_of(y)) ? differentiable(kRule, shared_from_this(), value_of(y), y) : y;
}

Tensor Forward::tangent(const Tensor& y) {
  if (TensorTransform* const inner = transform_of({&y, 1}); inner && inner->id > id)
    return inner->within({y}, [&](const auto& all) { return tangent(all[0]); });
  Tensor found = tangent_of(y);
  return found.defined() ? recorded_tangent(std::move(found), y) : found;
}

// Its gradient is a pair, too: it stays inside on its way to tensors without a tangent, for which it is zero.
Tensor Forward::recorded_tangent(Tensor tangent, const Tensor& y) {
  static constexpr auto kRule =
      rule("jvp", gradient<kPayload>([](const Tensor& grad, const Held& forward) { return forward->pair(grad, {}); }));
  return differentiable(kRule, shared_from_this(), std::move(tangent), y);
}

// Takes the tensors apart and joins the results. All tangents are recorded, also those of zero: for a pass inside the
// function a gradient has a value beside its tangent, and none of the two may be lost.
Tensor Forward::within(const std::vector<Tensor>& x, const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  std::vector<Tensor> values, directions;
  for (const Tensor& each : x) {
    values.push_back(each.defined() ? primal(each) : each);
    Tensor found = each.defined() ? tangent_of(each) : each;
    if (each.defined() && !found.defined()) found = zeros_like(values.back()).detach();
    directions.push_back(each.defined() ? recorded_tangent(std::move(found), each) : each);
  }
  const Tensor value = f(values), along = f(directions);
  if (value.defined()) return pair(value, along);
  return along.defined() ? pair(zeros_like(along), along) : value;
}

Tensor Forward::any_nan(const Tensor& x) { return value_of(x); }

// --- Ops.

void Forward::make_output(Storage& storage, uint8_t dtype, bool whole) {
  const StandIn* const before = behind(&storage);
  if (before && !before->is_borrowed) return;
  if (!before) stand_ins::require_inside(storage, *this);
  const bool is_fresh = !before && stand_ins::is_live(*this) && storage.made_under < id;
  StandIn made{.transform = shared_from_this(), .value = allocate(*storage.device, storage.size, 0)};
  if (!whole && !is_fresh && storage.size) {
    const Tensor old = tensor_over(storage, flat(storage, storage, 0, dtype));
    copy_into(tensor_over(*made.value, flat(storage, *made.value, 0, dtype)), value_of(old));
    if (const Tensor direction = tangent_of(old); direction.defined()) {
      made.tangent = allocate(*storage.device, storage.size, 0);
      copy_into(tensor_over(*made.tangent, flat(storage, *made.tangent, 0, dtype)), direction);
    }
  }
  if (!before) stand_ins::note_made(storage);
  stand_ins::set(storage, std::move(made));
}

// The output is a stand-in. Takes the memory of a tangent that covers it.
void Forward::set_tangent(const Tensor& output, const Tensor& direction) {
  Storage& storage = *storage_of(output);
  StandIn& in = *storage.stand_in;
  if (!direction.defined()) {
    if (is_dense_whole(output)) in.tangent = {};
    else if (in.tangent) fill_zeros(tangent_of(output));
    return;
  }
  const bool whole = is_dense_whole(output);
  const bool is_alone = storage_of(direction)->refs.load() == 1 && direction.impl().refs.load() == 1;
  if (whole && is_alone && is_dense(view_of(direction))) {
    in.tangent = Ref<Storage>::share(storage_of(direction));
    in.tangent_base = view_of(direction).offset - storage_of(direction)->offset;
    return;
  }
  if (!in.tangent) {
    in.tangent = allocate(*storage.device, storage.size, 0);
    in.tangent_base = 0;
    if (!whole) fill_zeros(tensor_over(*in.tangent, flat(storage, *in.tangent, 0, dtype_of(output))));
  }
  copy_into(tangent_of(output), direction);
}

namespace {
// A call with the values' views and storages in place of the stand-ins'.
struct ValueCall {
  explicit ValueCall(const OpCall& call) : made(call) {
    views.reserve(static_cast<size_t>(call.operands()));
    for (int i = 0; i < call.operands(); ++i) {
      views.push_back(*call.views[i]);
      storages.push_back(call.storages[i]);
    }
    for (const plugrad_view& each : views) pointers.push_back(&each);
    made.views = pointers.data();
    made.storages = storages.data();
  }
  void set(size_t i, const Tensor& value) {
    views[i] = view_of(value);
    storages[i] = storage_of(value);
    kept.push_back(value);
  }
  OpCall made;
  std::vector<plugrad_view> views;
  std::vector<const plugrad_view*> pointers;
  std::vector<Storage*> storages;
  std::vector<Tensor> kept;
};
}  // namespace

std::vector<Tensor> ForwardCall::again(const std::vector<Tensor>& replaced) const {
  ValueCall with(call);
  std::vector<Tensor> made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    made.push_back(
        empty_like(static_cast<Op>(call.opcode), device_of(outputs[i]), view_of(outputs[i]), dtype_of(outputs[i])));
    with.set(i, made.back());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i < replaced.size() && replaced[i].defined()) with.set(call.outputs + i, replaced[i]);
  stand_ins::run_inner(with.made, false);
  return made;
}

// The op has no tangents: its results are integers, or its inputs are constants.
bool Forward::run_on_values(const OpCall& call, bool may_decline) {
  ValueCall values(call);
  for (size_t i = 0; i < values.views.size(); ++i) {
    if (!call.storages[i]) continue;
    const Tensor x = tensor_over(*call.storages[i], *call.views[i]);
    if (i < call.outputs && (behind(call.storages[i]) || is_inexact(dtype_of(x)))) {  // the results stay inside
      make_output(*call.storages[i], dtype_of(x), stand_ins::overwrites(call, i));
      set_tangent(x, {});
    }
    values.set(i, value_of(x));
  }
  return stand_ins::run_inner(values.made, may_decline);
}

namespace {
// The operands of a call as tensors; undefined: numbers.
std::vector<Tensor> tensors_of(const OpCall& call) {
  std::vector<Tensor> all;
  for (int i = 0; i < call.operands(); ++i)
    all.push_back(call.storages[i] ? tensor_over(*call.storages[i], *call.views[i]) : Tensor());
  return all;
}

// An immediate as a tensor of this shape.
Tensor spread(const plugrad_view& number, const Tensor& like) {
  const Tensor one = plugrad::empty(Op::FILL, device_of(like), {}, number.dtype);
  plugrad::run(Op::FILL, {operand(one)}, {Immediate{number}});
  return with_view(one, broadcast_to(view_of(one), view_of(like), device_of(one).info.alignment));
}

// x, or a copy if an output shares its memory: after the op the rule needs the values from before.
Tensor kept_for_rule(const Tensor& x, const std::vector<Tensor>& outputs) {
  const auto shares = [&](const Tensor& out) { return storage_of(out) == storage_of(x); };
  if (std::ranges::none_of(outputs, shares)) return x;
  Tensor copy = empty_like(Op::COPY, device_of(x), view_of(x), dtype_of(x));
  copy_into(copy, x);
  return copy;
}

}  // namespace

// Whether tangents go into the op, and can come out of it.
bool Forward::has_tangents(const OpCall& call, const std::vector<Tensor>& operands) const {
  const OpInfo* const info = op_info(call.opcode);
  if (call.opcode == PLUGRAD_OP_SIGN || (info && info->shape == OpShape::generate)) return false;
  bool comes_in = false, goes_out = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool is_read = i >= call.outputs || is_in_out(call.opcode, static_cast<int>(i));
    comes_in |= operands[i].defined() && is_read && tangent_of(operands[i]).defined();
    goes_out |= i < call.outputs && is_inexact(call.views[i]->dtype);
  }
  return comes_in && goes_out;
}

bool Forward::run(const OpCall& call, bool may_decline) {
  const std::vector<Tensor> operands = tensors_of(call);
  if (!has_tangents(call, operands)) return run_on_values(call, may_decline);
  const ForwardRule rule = forward_rule(call.opcode);
  if (!rule && may_decline) return false;
  if (!rule) throw_no_rule(op_label(call.opcode));
  const NoGrad unrecorded;
  ValueCall values(call);
  ForwardCall forward{values.made, {}, {}, {}};
  for (size_t i = 0; i < call.outputs; ++i) {
    make_output(*call.storages[i], call.views[i]->dtype, stand_ins::overwrites(call, i));
    forward.outputs.push_back(value_of(operands[i]));
    values.set(i, forward.outputs.back());
  }
  for (size_t i = call.outputs; i < operands.size(); ++i) {
    const bool is_tensor = operands[i].defined();
    forward.tangents.push_back(is_tensor ? tangent_of(operands[i]) : Tensor());
    forward.inputs.push_back(is_tensor ? kept_for_rule(value_of(operands[i]), forward.outputs)
                                       : spread(*call.views[i], operands[0]));
    if (is_tensor) values.set(i, forward.inputs.back());
  }
  if (!stand_ins::run_inner(values.made, may_decline)) return false;
  set_tangents(call, operands, rule(forward));
  return true;
}

// Of the outputs; an output that the op adds to keeps its own tangent as a term.
void Forward::set_tangents(const OpCall& call, const std::vector<Tensor>& operands, std::vector<Tensor> made) {
  made.resize(call.outputs);
  for (size_t i = 0; i < call.outputs; ++i) {
    if (!is_inexact(call.views[i]->dtype)) continue;
    const Tensor before = is_in_out(call.opcode, static_cast<int>(i)) ? tangent_of(operands[i]) : Tensor();
    if (!before.defined()) set_tangent(operands[i], std::exchange(made[i], {}));
    else if (made[i].defined()) plugrad::run(Op::ADD, {operand(before)}, {operand(before), operand(made[i])});
  }
}

Storage& Forward::readable(Storage& storage, uint64_t& offset) const {
  offset += storage.stand_in->base;
  return *storage.stand_in->value;
}

void Forward::run_task(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                       const std::vector<Tensor>& inputs) {
  std::vector<Tensor> made, given, directions;
  for (const Tensor& each : inputs) directions.push_back(tangent_of(each));
  const auto is_known = [](const Tensor& x) { return x.defined(); };
  const auto is_floating_result = [](const Tensor& x) { return is_inexact(dtype_of(x)); };
  const bool has_tangents = std::ranges::any_of(directions, is_known) && std::ranges::any_of(outputs, is_floating_result);
  for (const Tensor& each : outputs) {
    if (has_tangents || behind(storage_of(each))) make_output(*storage_of(each), dtype_of(each), false);
    made.push_back(value_of(each));
  }
  for (const Tensor& each : inputs) given.push_back(value_of(each));
  run_in_step(task, made, given);
  std::vector<Tensor> of_outputs;
  if (has_tangents) {
    const NoGrad unrecorded;
    std::optional<std::vector<Tensor>> found = task->tangents(made, given, directions);
    if (!found) throw_no_rule(task->text());
    of_outputs = std::move(*found);
  }
  of_outputs.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (behind(storage_of(outputs[i])) && is_floating_result(outputs[i]) && outputs[i].count())
      set_tangent(outputs[i], std::exchange(of_outputs[i], {}));
}

// Shares the value's memory, so that writes to one of the tensors reach the other.
Tensor Forward::constant_of(const Tensor& x) {
  const Tensor value = constant(value_of(x));
  Ref<Storage> storage = allocate(device_of(x), 0, 0);
  storage->size = storage_of(x)->size;
  storage->made_under = id;
  plugrad_view v = view_of(x);
  v.buffer = storage->buffer;
  v.offset = storage->offset + (view_of(x).offset - storage_of(x)->offset);
  set_layout(v, device_of(x).info.alignment);
  const uint64_t base = view_of(value).offset - storage_of(value)->offset - (v.offset - storage->offset);
  stand_ins::set(*storage, {.transform = shared_from_this(), .value = Ref<Storage>::share(storage_of(value)), .base = base});
  return tensor_over(*storage, v);
}

}  // namespace plugrad::func
