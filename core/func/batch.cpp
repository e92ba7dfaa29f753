#include <core/func/batch.hpp>

#include <core/autograd/rule.hpp>
#include <core/autograd/sum.hpp>
#include <core/func/batched_call.hpp>
#include <core/runtime/generator.hpp>
#include <core/tensor/reach.hpp>
#include <plugrad/autograd/autograd.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace plugrad::func {
namespace {
// Where the examples lie in a tensor outside.
struct Place {
  std::shared_ptr<Batch> batch;
  int axis;
};

[[noreturn]] void refuse_vmap(const std::string& why) { throw Error(Code::invalid, "[vmap] " + why); }

// A view with an axis of this extent and stride in front of `axis`.
plugrad_view with_axis(const plugrad_view& v, int axis, int64_t extent, int64_t stride) {
  if (v.rank == PLUGRAD_MAX_RANK)
    refuse_vmap("a tensor of rank " + std::to_string(v.rank) + " has no room for the axis of the examples");
  plugrad_view out = v;
  ++out.rank;
  out.shape[axis] = extent;
  out.strides[axis] = stride;
  for (int i = axis; i < v.rank; ++i) {
    out.shape[i + 1] = v.shape[i];
    out.strides[i + 1] = v.strides[i];
  }
  return out;
}

plugrad_view without_axis(const plugrad_view& v, int axis) {
  plugrad_view out = v;
  --out.rank;
  for (int i = axis; i < out.rank; ++i) {
    out.shape[i] = v.shape[i + 1];
    out.strides[i] = v.strides[i + 1];
  }
  return out;
}

// The sum over the first axis.
Tensor squeezed_sum(const Tensor& x) {
  Shape rest;
  for (int i = 1; i < x.rank(); ++i) rest.push_back(x.size(i));
  return sum_to(x, rest);
}
}  // namespace

// --- Arguments and results.

Tensor Batch::wrapped(const Tensor& x, int axis) {
  const plugrad_view& v = view_of(x);
  const auto bytes = static_cast<int64_t>(dtype_size(v.dtype));
  plugrad_view one = without_axis(v, axis);
  set_layout(one, device_of(x).info.alignment);
  const Reach reach = one.count ? reach_of(one, "vmap") : Reach{};
  Ref<Storage> storage = allocate(device_of(x), 0, 0);
  storage->size = static_cast<uint64_t>(reach.above - reach.below);
  storage->made_under = id;
  one.buffer = storage->buffer;
  one.offset = storage->offset + static_cast<uint64_t>(-reach.below);
  set_layout(one, device_of(x).info.alignment);
  const uint64_t base = v.offset - storage_of(x)->offset + static_cast<uint64_t>(reach.below);
  stand_ins::set(*storage, {.transform = shared_from_this(),
                            .value = Ref<Storage>::share(storage_of(x)),
                            .base = base,
                            .stride = v.strides[axis] * bytes,
                            .is_borrowed = true});
  return tensor_over(*storage, one);
}

Tensor Batch::unwrapped(const Tensor& y, int axis) const {
  const StandIn* const in = behind(storage_of(y));
  const plugrad_view& v = view_of(y);
  plugrad_view all = with_axis(v, axis, size, in ? in->stride / static_cast<int64_t>(dtype_size(v.dtype)) : 0);
  Storage& memory = in ? *in->value : *storage_of(y);
  if (in) {
    all.buffer = memory.buffer;
    all.offset = memory.offset + in->base + (v.offset - storage_of(y)->offset);
  }
  set_layout(all, device_of(y).info.alignment);
  return tensor_over(memory, all);
}

Tensor Batch::wrap(const Tensor& x, int axis) {
  static constexpr auto kRule =
      rule("vmap",
           gradient<kPayload>([](const Tensor& grad, const Place& place) { return place.batch->unwrap(grad, place.axis); }));
  if (TensorTransform* const inner = transform_of({&x, 1}); inner && inner->id > id)
    return inner->within({x}, [&](const auto& all) { return wrap(all[0], axis + inner->added_axes()); });
  return differentiable(kRule, Place{shared_from_this(), axis}, wrapped(x, axis), x);
}

Tensor Batch::unwrap(const Tensor& y, int axis) {
  static constexpr auto kRule =
      rule("vmap",
           gradient<kPayload>([](const Tensor& grad, const Place& place) { return place.batch->wrap(grad, place.axis); }));
  if (TensorTransform* const inner = transform_of({&y, 1}); inner && inner->id > id)
    return inner->within({y}, [&](const auto& all) { return unwrap(all[0], axis + inner->added_axes()); });
  return differentiable(kRule, Place{shared_from_this(), axis}, unwrapped(y, axis), y);
}

// The gradient of the sum is the same for all examples, and stands for all of them.
Tensor Batch::leave(const Tensor& grad) {
  const Tensor all = unwrap(grad, 0);
  return squeezed_sum(all);
}

Tensor Batch::within(const std::vector<Tensor>& x, const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  std::vector<Tensor> all;
  for (const Tensor& each : x) all.push_back(each.defined() ? unwrap(each, 0) : each);
  const Tensor made = f(all);
  return made.defined() ? wrap(made, 0) : made;
}

Tensor Batch::any_nan(const Tensor& x) {
  const NoGrad unrecorded;
  return leave(x);  // a sum with NaN is NaN
}

// --- Ops.

void Batch::make_output(Storage& storage, uint8_t dtype, bool whole) {
  const StandIn* const before = behind(&storage);
  if (before && !before->is_borrowed) return;
  if (!before) stand_ins::require_inside(storage, *this);
  const bool is_fresh = !before && stand_ins::is_live(*this) && storage.made_under < id;
  StandIn made{.transform = shared_from_this(),
               .value = allocate(*storage.device, storage.size * static_cast<uint64_t>(size), 0),
               .stride = static_cast<int64_t>(storage.size)};
  const auto count = static_cast<int64_t>(storage.size / dtype_size(dtype));
  if (!whole && !is_fresh && count) {
    plugrad_view from = dense_view({count}, dtype, storage.device->info.alignment);
    from.buffer = storage.buffer;
    from.offset = storage.offset;
    set_layout(from, storage.device->info.alignment);
    const Tensor old = unwrapped(tensor_over(storage, from), 0);
    plugrad_view to = dense_view({size, count}, dtype, storage.device->info.alignment);
    to.buffer = made.value->buffer;
    to.offset = made.value->offset;
    plugrad::run(Op::COPY, {operand(tensor_over(*made.value, to))}, {operand(old)});
  }
  if (!before) stand_ins::note_made(storage);
  stand_ins::set(storage, std::move(made));
}

bool Batch::draw(const OpCall& call, bool may_decline) {
  if (randomness_ == Randomness::error)
    refuse_vmap(
        "a random function is called inside: say whether each example gets numbers of its own, with randomness "
        "\"different\", or all get the same, with \"same\"");
  const plugrad_view& one = *call.views[0];
  make_output(*call.storages[0], one.dtype, true);
  plugrad_view all = view_of(unwrapped(tensor_over(*call.storages[0], one), 0));
  const auto counters = [&](int64_t count) {
    const int64_t per_counter = one.dtype == PLUGRAD_F64 ? 2 : 4;
    return static_cast<uint64_t>((count + per_counter - 1) / per_counter);
  };
  generator_of(*call.storages[0]->device).offset += counters(all.count) - counters(one.count);  // the caller took the rest
  const plugrad_view* const views[] = {&all, call.views[1], call.views[2]};
  Storage* const storages[] = {behind(call.storages[0])->value.get(), nullptr, nullptr};
  OpCall inner = call;
  inner.views = views;
  inner.storages = storages;
  return stand_ins::run_inner(inner, may_decline);
}

bool Batch::run(const OpCall& call, bool may_decline) {
  if (op_info(call.opcode) && op_info(call.opcode)->shape == OpShape::random && !behind(call.storages[0]))
    return draw(call, may_decline);
  if (const std::optional<bool> done = BatchedCall(*this, call).run(may_decline)) return *done;
  return BatchedCall(*this, call).run_each(may_decline);
}

Storage& Batch::readable(Storage&, uint64_t&) const {
  refuse_vmap("an element has a value for each of " + std::to_string(size) +
              " examples, so item() and the like have no value to give: return the tensor and read it outside, or choose "
              "with where()");
}

void Batch::run_task(const std::shared_ptr<HostTask>& task, const std::vector<Tensor>& outputs,
                     const std::vector<Tensor>& inputs) {
  for (const Tensor& each : outputs) make_output(*storage_of(each), dtype_of(each), false);
  for (int64_t i = 0; i < size; ++i) {
    const auto of_example = [&](const std::vector<Tensor>& all) {
      std::vector<Tensor> ones;
      for (const Tensor& each : all) {
        const Tensor examples = unwrapped(each, 0);
        plugrad_view one = without_axis(view_of(examples), 0);
        one.offset += static_cast<uint64_t>(i * view_of(examples).strides[0] * item_size(each.dtype()));
        set_layout(one, device_of(each).info.alignment);
        ones.push_back(with_view(examples, one));
      }
      return ones;
    };
    run_in_step(task, of_example(outputs), of_example(inputs));
  }
}

// --- vmap.

struct Examples::Inner {
  std::shared_ptr<Batch> batch;
  stand_ins::Scope scope;
};

Examples::Examples(int64_t size, Randomness randomness) {
  if (size < 1) refuse_vmap("there are " + std::to_string(size) + " examples: give at least one");
  auto batch = std::make_shared<Batch>(size, randomness);
  Batch& transform = *batch;
  inner_.reset(new Inner{std::move(batch), stand_ins::Scope(transform)});
}
Examples::~Examples() = default;

Tensor Examples::wrap(const Tensor& x, int axis) const {
  require_defined(x, "vmap");
  const int at = normal_axis(axis, x.rank(), "vmap");
  if (x.size(at) != inner_->batch->size)
    refuse_vmap("axis " + std::to_string(at) + " of an input of shape " + x.shape().text() + " has " +
                std::to_string(x.size(at)) + " examples, and another input " + std::to_string(inner_->batch->size) +
                ": give the same number of each");
  return inner_->batch->wrap(x, at);
}

Tensor Examples::unwrap(const Tensor& y, int axis) const {
  require_defined(y, "vmap");
  return inner_->batch->unwrap(y, normal_axis(axis, y.rank() + 1, "vmap"));
}

namespace {
template <class T> T axis_of(const std::vector<T>& axes, size_t i, size_t count, const char* name) {
  if (axes.empty()) return 0;
  if (axes.size() == count) return axes[i];
  refuse_vmap(std::to_string(axes.size()) + " " + name + " for " + std::to_string(count) +
              " tensors: give one for each, or none");
}
}  // namespace

Tensors vmap(const Function& f, const Tensors& inputs, const VmapOptions& options) {
  const auto axis = [&](size_t i) { return axis_of(options.in_axes, i, inputs.size(), "in_axes"); };
  std::optional<int64_t> size;
  for (size_t i = 0; i < inputs.size() && !size; ++i) {
    require_defined(inputs[i], "vmap");
    if (axis(i)) size = inputs[i].size(*axis(i));
  }
  if (!size) refuse_vmap("no input has examples: give an axis for at least one input");
  const Examples examples(*size, options.randomness);
  Tensors arguments, results;
  for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(axis(i) ? examples.wrap(inputs[i], *axis(i)) : inputs[i]);
  const Tensors made = f(arguments);
  for (size_t i = 0; i < made.size(); ++i)
    results.push_back(examples.unwrap(made[i], axis_of(options.out_axes, i, made.size(), "out_axes")));
  return results;
}

}  // namespace plugrad::func
