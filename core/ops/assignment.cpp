#include <plugrad/ops/assignment.hpp>

#include <core/ops/run.hpp>
#include <core/ops/write.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>

#include <algorithm>

namespace plugrad {
namespace {
// A part of a dense tensor: a view without a buffer. Its offset counts from the tensor's own offset.
struct Region {
  plugrad_view part;
  Shape whole;
};

// A dense tensor with x's values, recorded.
Tensor dense_in_graph(const Tensor& x) { return is_dense(view_of(x)) ? x : clone(x); }

plugrad_view placed(const Tensor& whole, const Region& region) {
  plugrad_view v = region.part;
  v.buffer = view_of(whole).buffer;
  v.offset += view_of(whole).offset;
  set_layout(v, device_of(whole).info.alignment);
  return v;
}

Tensor in_zeros(const Tensor& x, const Region& region);

Tensor region_of(const Tensor& x, const Region& region) {
  static constexpr auto kRule =
      rule("part", gradient<kPayload>([](const Tensor& grad, const Region& from) { return in_zeros(grad, from); }));
  const Tensor source = dense_in_graph(x);
  return differentiable(kRule, region, with_view(source, placed(source, region)), source);
}

// Zeros with x in the region.
Tensor in_zeros(const Tensor& x, const Region& region) {
  static constexpr auto kRule =
      rule("place", gradient<kPayload>([](const Tensor& grad, const Region& where) { return region_of(grad, where); }));
  DeviceState& device = device_of(x);
  Tensor out = filled(device, dense_view(region.whole, dtype_of(x), device.info.alignment), dtype_of(x), 0);
  run(Op::COPY, {operand(out, placed(out, region))}, {x});
  return differentiable(kRule, region, std::move(out), x);
}

// x with zeros in the region.
Tensor erased(const Tensor& x, const Region& region) {
  static constexpr auto kRule =
      rule("erase", gradient<kPayload>([](const Tensor& grad, const Region& where) { return erased(grad, where); }));
  Tensor out = unary(Op::COPY, x);
  run(Op::FILL, {operand(out, placed(out, region))}, {immediate(dtype_of(x), 0, 0)});
  return differentiable(kRule, region, std::move(out), x);
}

constexpr auto kOutside = gradient<kPayload>([](const Tensor& grad, const Region& where) { return erased(grad, where); });
constexpr auto kInside = gradient<kPayload>([](const Tensor& grad, const Region& where) { return region_of(grad, where); });

Region region_between(const Tensor& x, const Tensor& part) {
  plugrad_view v = view_of(part);
  v.offset -= view_of(x).offset;
  v.buffer = nullptr;
  return {v, x.shape()};
}

void require_assignable(const Tensor& x, const Tensor& part) {
  require_writable(x, "assign");
  require_writable(part, "assign");
  if (storage_of(x) != storage_of(part))
    throw Error(Code::invalid, "[assign] the part is no view of the tensor: take it from the tensor without recording");
}

void require_whole(const Tensor& x) {
  require_unshared(x, "assign", 2);
  if (!x.is_contiguous())
    throw Error(Code::invalid, "[assign] a tensor of shape " + x.shape().text() +
                                   " that is not contiguous cannot be written in part while recording: clone it first");
}
}  // namespace

void assign(Tensor& x, const Tensor& part, const Tensor& source) {
  static constexpr auto kRule = rule("assign", kOutside, kInside);
  require_assignable(x, part);
  require_defined(source, "assign");
  const Tensor from = fitting(part, source);
  const bool recorded = is_recorded(x, &from);
  if (recorded) require_whole(x);
  if (!part.count()) return;
  Tensor target = part;
  raise_version(target);
  run(Op::COPY, {target}, {from});
  if (recorded) (void)differentiable(kRule, region_between(x, part), x, x, from);
}

void assign(Tensor& x, const Tensor& part, Number value) {
  static constexpr auto kRule = rule("assign", kOutside);
  require_assignable(x, part);
  const bool recorded = is_recorded(x, nullptr);
  if (recorded) require_whole(x);
  Tensor target = part;
  target.fill_(value);
  if (recorded && part.count()) (void)differentiable(kRule, region_between(x, part), x, x);
}

}  // namespace plugrad
