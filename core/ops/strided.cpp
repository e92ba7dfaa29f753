// Views by strides. Their elements may be shared.
#include <plugrad/ops/views.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>

#include <algorithm>

namespace plugrad {
namespace {
struct Strided {
  Shape size, stride;
  int64_t offset;
};

// The positions of the view's elements among x's, row-major.
Tensor positions_of(const Strided& view, Device device) {
  Tensor all = scalar(view.offset, DType::i64, device);
  for (size_t i = 0; i < view.size.size(); ++i)
    all = add(unsqueeze(all, -1), mul(arange(0, view.size[i], 1, DType::i64, device), view.stride[i]));
  return reshape(all, {view.size.count()});
}

// Zeros of this shape with x's elements added where the view has them.
Tensor add_strided(const Tensor& x, const Shape& shape, const Strided& view) {
  const Tensor none = zeros({shape.count()}, x.dtype(), x.device());
  return reshape(scatter_add(none, 0, positions_of(view, x.device()), reshape(x, {x.count()})), shape);
}

void require_inside(const Tensor& x, const Strided& view) {
  bool fits = view.size.size() == view.stride.size() && view.offset >= 0;
  int64_t last = view.offset;
  for (size_t i = 0; fits && i < view.size.size(); ++i) {
    int64_t reach = 0;
    fits = view.size[i] >= 0 && view.stride[i] >= 0 &&
           !__builtin_mul_overflow(std::max<int64_t>(view.size[i] - 1, 0), view.stride[i], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || (view.size.count() && last >= x.count()))
    refuse("as_strided", "size " + view.size.text() + ", stride " + view.stride.text() + " and offset " +
                             std::to_string(view.offset) + " leave the " + std::to_string(x.count()) +
                             " elements of x, or do not fit each other: give a stride of 0 or more for each extent");
}
}  // namespace

Tensor as_strided(const Tensor& x, const Shape& size, const Shape& stride, int64_t storage_offset) {
  static constexpr auto kRule =
      rule("as_strided", gradient<kShape, kPayload>([](const Tensor& grad, const Shape& shape, const Strided& view) {
             return add_strided(grad, shape, view);
           }));
  require_defined(x, "as_strided");
  if (!x.is_contiguous())
    refuse("as_strided",
           "x has strides " + x.strides().text() + ": make it contiguous, so that its elements have one order");
  const Strided view{size, stride, storage_offset};
  require_inside(x, view);
  plugrad_view v = view_of(x);
  v.rank = static_cast<uint8_t>(size.rank());
  std::ranges::copy(size, v.shape);
  std::ranges::copy(stride, v.strides);
  if (size.count()) v.offset += static_cast<uint64_t>(storage_offset * item_size(x.dtype()));
  set_layout(v, device_of(x).info.alignment);
  return differentiable(kRule, view, with_view(x, v), x);
}

}  // namespace plugrad
