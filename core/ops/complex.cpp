#include <plugrad/ops/complex.hpp>

#include <core/autograd/sum.hpp>
#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/trigonometry.hpp>
#include <plugrad/ops/views.hpp>

namespace plugrad {
namespace {
void require_complex(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (!is_complex(x.dtype()))
    refuse(name,
           std::string("the tensor is ") + dtype_name(x.dtype()) + ", expected c64 or c128: complex(x, zeros) makes it");
}

Tensor joined_parts(const Tensor& re, const Tensor& im) {
  const Tensor out = empty(Op::COPY, device_of(re), re.shape(), complex_dtype(dtype_of(re)));
  if (!out.count()) return out;
  run(Op::COPY, {part_of(out, 0)}, {re});
  run(Op::COPY, {part_of(out, 1)}, {im});
  return out;
}

// The parts of a complex number, of one dtype and broadcast.
void require_parts(const char* name, const Tensor& re, const Tensor& im) {
  require_defined(re, name);
  require_defined(im, name);
  require_together(name, re, im);
  if (!complex_dtype(dtype_of(re)))
    refuse(name, std::string("the parts are ") + dtype_name(re.dtype()) + ", expected f32 or f64: cast them");
}

// Whether pairs along the last axis are complex numbers in memory.
bool are_pairs(const plugrad_view& v) {
  const auto size = static_cast<int64_t>(2 * dtype_size(v.dtype));
  bool are = v.strides[v.rank - 1] == 1 && v.offset % static_cast<uint64_t>(size) == 0;
  for (int i = 0; i + 1 < v.rank; ++i) are &= v.shape[i] == 1 || v.strides[i] % 2 == 0;
  return are;
}
}  // namespace

Tensor real(const Tensor& x) {
  static constexpr auto kRule =
      for_complex(rule("real", gradient([](const Tensor& grad) { return complex(grad, zeros_like(grad)); })));
  require_defined(x, "real");
  return is_complex(x.dtype()) ? differentiable(kRule, part_of(x, 0), x) : x;
}

Tensor imag(const Tensor& x) {
  static constexpr auto kRule =
      for_complex(rule("imag", gradient([](const Tensor& grad) { return complex(zeros_like(grad), grad); })));
  require_complex("imag", x);
  return differentiable(kRule, part_of(x, 1), x);
}

Tensor conj(const Tensor& x) {
  require_defined(x, "conj");
  return is_complex(x.dtype()) ? conjugated(x) : x;
}

Tensor adjoint(const Tensor& x) {
  require_defined(x, "adjoint");
  return conj(transpose(x));
}

Tensor complex(const Tensor& re, const Tensor& im) {
  static constexpr auto kRule = for_complex(rule("complex", gradient([](const Tensor& grad) { return real(grad); }),
                                                 gradient([](const Tensor& grad) { return imag(grad); })));
  require_parts("complex", re, im);
  if (re.shape() == im.shape()) return differentiable(kRule, joined_parts(re, im), re, im);
  const Shape shape = broadcast_shapes(re.shape(), im.shape());
  return complex(expand(re, shape), expand(im, shape));
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  require_parts("polar", abs, angle);
  return complex(mul(abs, cos(angle)), mul(abs, sin(angle)));
}

Tensor view_as_real(const Tensor& x) {
  static constexpr auto kRule =
      for_complex(rule("view_as_real", gradient([](const Tensor& grad) { return view_as_complex(grad); })));
  require_complex("view_as_real", x);
  if (x.rank() == PLUGRAD_MAX_RANK)
    refuse("view_as_real", "x has 8 axes, and the view would have one more: reshape x first");
  plugrad_view v = view_of(part_of(x, 0));
  v.shape[v.rank] = 2;
  v.strides[v.rank++] = 1;
  set_layout(v, device_of(x).info.alignment);
  return differentiable(kRule, with_view(x, v), x);
}

Tensor view_as_complex(const Tensor& x) {
  static constexpr auto kRule =
      for_complex(rule("view_as_complex", gradient([](const Tensor& grad) { return view_as_real(grad); })));
  require_defined(x, "view_as_complex");
  if (!complex_dtype(dtype_of(x)) || x.rank() == 0 || x.size(-1) != 2)
    refuse("view_as_complex", std::string("x is ") + dtype_name(x.dtype()) + " of shape " + x.shape().text() +
                                  ", expected f32 or f64 with a last axis of extent 2");
  const Tensor pairs = are_pairs(view_of(x)) ? x : clone(ungraphed(x));
  plugrad_view v = view_of(pairs);
  v.dtype = complex_dtype(v.dtype);
  --v.rank;
  for (int i = 0; i < v.rank; ++i) v.strides[i] /= 2;
  set_layout(v, device_of(x).info.alignment);
  return differentiable(kRule, with_view(pairs, v), x);
}

}  // namespace plugrad
