// Parameters of PyTorch's functions that the core's functions have in another form: unbiased=, sorter=, compute_mode= and
// so on.
#include <python/bound.hpp>

#include <plugrad/ops/linalg.hpp>

#include <string>

namespace plugrad::python {
namespace {

// --- var, std, var_mean and std_mean: unbiased=False is correction=0.

template <class R> using Moment = R (*)(const Tensor&, const Shape&, bool, double);

// own: the annotation of the operand, which a method does not have.
template <class Target, class R, class... Own>
void bind_unbiased(Target& target, const char* name, Moment<R> f, const Own&... own) {
  const auto call = [f](const Tensor& x, const ShapeLike& axes, bool unbiased, bool keepdim) {
    return given(unlocked(
        [f, source = x, over = axes.get(), keepdim, unbiased] { return f(source, over, keepdim, unbiased ? 1 : 0); }));
  };
  target.def(name, call, own..., nb::arg("dim"), nb::arg("unbiased"), nb::arg("keepdim") = false);
  target.def(
      name, [call](const Tensor& x, bool unbiased, bool keepdim) { return call(x, {}, unbiased, keepdim); }, own...,
      nb::arg("unbiased"), nb::kw_only(), nb::arg("keepdim") = false);
}

template <class Target, class... Own> void bind_moments(Target& target, const Own&... own) {
  bind_unbiased(target, "var", Moment<Tensor>(var), own...);
  bind_unbiased(target, "std", Moment<Tensor>(stddev), own...);
  bind_unbiased(target, "var_mean", Moment<std::vector<Tensor>>(var_mean), own...);
  bind_unbiased(target, "std_mean", Moment<std::vector<Tensor>>(std_mean), own...);
}

// --- Norms by name.

template <class Target, class... Own> void bind_norm(Target& target, const Own&... own) {
  target.def(
      "norm",
      [](const Tensor& x, const std::string& p, const ShapeLike& axes, bool keepdim) {
        if (p != "fro" && p != "nuc")
          throw Error(Code::invalid, "[norm] p '" + p + "' is unknown: 'fro', 'nuc' or a number expected");
        return unlocked([=, source = x, over = axes.get()] {
          if (p == "fro") return norm(source, 2, over, keepdim);
          return linalg::matrix_norm(source, linalg::MatrixNorm::nuclear, over.empty() ? Shape{-2, -1} : over, keepdim);
        });
      },
      own..., nb::arg("p"), nb::arg("dim") = nb::tuple(), nb::arg("keepdim") = false);
}

// --- Tensors in place of numbers, and sequences with a permutation that sorts them.

std::vector<Tensor> split_at(const Tensor& x, const Tensor& places, int64_t axis) {
  if (!is_integer(places.dtype()) || places.rank() > 1)
    throw Error(Code::invalid, "[tensor_split] indices_or_sections has dtype " + std::string(dtype_name(places.dtype())) +
                                   " and shape " + places.shape().text() + ": expected integers of rank 0 or 1");
  if (!places.rank()) return tensor_split(x, places.item<int64_t>(), static_cast<int>(axis));
  std::vector<int64_t> indices(static_cast<size_t>(places.count()));
  cast(places.detach(), DType::i64).copy_to_host(indices.data());
  return tensor_split(x, indices, static_cast<int>(axis));
}

template <class Target, class... Own> void bind_split(Target& target, const Own&... own) {
  target.def("tensor_split", bound(&split_at), own..., nb::arg("indices_or_sections"), nb::arg("dim") = 0);
}

template <class Values>
Tensor searched(const Tensor& sequence, Values values, bool out_int32, bool right, Side side, const Tensor& sorter) {
  const Tensor sorted = sorter.defined() ? take_along_dim(sequence, sorter, -1) : sequence;
  return searchsorted(sorted, values, out_int32, right, side);
}

template <class Values> void bind_sorter(nb::module_& m) {
  m.def("searchsorted", bound(&searched<Values>), nb::arg("sorted_sequence"), nb::arg("values"), nb::kw_only(),
        nb::arg("out_int32") = false, nb::arg("right") = false, nb::arg("side") = "left", nb::arg("sorter").none());
}

// --- Parameters that the core does not need: output_size and compute_mode. They are checked.

Tensor repeated(const Tensor& x, const Tensor& repeats, std::optional<int64_t> axis, int64_t output_size) {
  const Tensor out = repeat_interleave(x, repeats, axis);
  const int64_t size = axis ? out.size(static_cast<int>(*axis)) : out.count();
  if (size != output_size)
    throw Error(Code::invalid, "[repeat_interleave] output_size is " + std::to_string(output_size) +
                                   ", but the repeats add up to " + std::to_string(size) + ": give that or leave it out");
  return out;
}

template <class Target, class... Own> void bind_repeats(Target& target, const Own&... own) {
  target.def("repeat_interleave", bound(&repeated), own..., nb::arg("repeats"), nb::arg("dim") = nb::none(), nb::kw_only(),
             nb::arg("output_size"));
}

Tensor distances(const Tensor& x1, const Tensor& x2, double p, const std::string& mode) {
  if (mode != "use_mm_for_euclid_dist_if_necessary" && mode != "use_mm_for_euclid_dist" &&
      mode != "donot_use_mm_for_euclid_dist")
    throw Error(Code::invalid, "[cdist] compute_mode '" + mode +
                                   "' is unknown: use_mm_for_euclid_dist_if_necessary, use_mm_for_euclid_dist or "
                                   "donot_use_mm_for_euclid_dist expected");
  return cdist(x1, x2, p);
}

// --- x.new_full(size, value) and similar: x's dtype and device are the defaults.

Tensor filled_beside(const Tensor& x, const Shape& shape, Number value, const DTypeLike& dtype, const DeviceLike& device) {
  const Device where = device.given.is_none() ? x.device() : device.get();
  return unlocked([=, type = dtype.get(x.dtype())] { return full(shape, value, type, where); });
}

void bind_new(nb::class_<Tensor>& tensor, const char* name, int64_t value) {
  tensor
      .def(
          name,
          [value](const Tensor& x, const ShapeLike& size, const DTypeLike& dtype, const DeviceLike& device) {
            return filled_beside(x, size.get(), value, dtype, device);
          },
          nb::arg("size"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none())
      .def(
          name,
          [value](const Tensor& x, const nb::args& sizes, const DTypeLike& dtype, const DeviceLike& device) {
            ShapeLike shape;
            if (!sizes.size() || !nb::try_cast(nb::object(sizes), shape)) throw nb::next_overload();
            return filled_beside(x, shape.get(), value, dtype, device);
          },
          nb::arg("sizes"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none(),
          nb::sig(("def " + std::string(name) +
                   "(self, *sizes: int, dtype: DType | str | type | None = None, "
                   "device: Device | str | None = None) -> Tensor")
                      .c_str()));
}

void bind_all_new(nb::class_<Tensor>& tensor) {
  bind_new(tensor, "new_zeros", 0);
  bind_new(tensor, "new_ones", 1);
  bind_new(tensor, "new_empty", 0);
  tensor.def(
      "new_full",
      [](const Tensor& x, const ShapeLike& size, const NumberLike& value, const DTypeLike& dtype, const DeviceLike& device) {
        return filled_beside(x, size.get(), value.value, dtype, device);
      },
      nb::arg("size"), nb::arg("fill_value"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device") = nb::none());
}

// --- Sizes one by one.

void bind_sizes(nb::class_<Tensor>& tensor) {
  tensor.def(
      "sum_to_size",
      [](const Tensor& x, const nb::args& sizes) {
        ShapeLike size;
        if (!nb::try_cast(nb::object(sizes), size)) throw nb::next_overload();
        return unlocked([source = x, shape = size.get()] { return sum_to_size(source, shape); });
      },
      nb::arg("size"), nb::sig("def sum_to_size(self, *size: int) -> Tensor"));
}

// --- Random numbers on another device than `like`.

template <class... A, class... Names>
void bind_drawn_like(nb::module_& m, const char* name, Tensor (*f)(const Tensor&, A..., std::optional<DType>),
                     const Names&... names) {
  m.def(
      name,
      [f](const Tensor& like, A... numbers, const DTypeLike& dtype, const DeviceLike& device) {
        const DType wanted = dtype.get(like.dtype());
        return unlocked(
            [=, source = empty(like.shape(), like.dtype(), device.get())] { return f(source, numbers..., wanted); });
      },
      nb::arg("like"), names..., nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("device"));
}
}  // namespace

void bind_overloads(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_moments(m, nb::arg("x"));
  bind_moments(tensor);
  bind_norm(m, nb::arg("x"));
  bind_norm(tensor);
  bind_split(m, nb::arg("x"));
  bind_split(tensor);
  bind_sorter<const Tensor&>(m);
  bind_sorter<Number>(m);
  bind_repeats(m, nb::arg("x"));
  bind_repeats(tensor);
  m.def("cdist", bound(&distances), nb::arg("x1"), nb::arg("x2"), nb::arg("p") = 2,
        nb::arg("compute_mode") = "use_mm_for_euclid_dist_if_necessary");
  bind_all_new(tensor);
  bind_sizes(tensor);
  bind_drawn_like<>(m, "rand_like", rand_like);
  bind_drawn_like<>(m, "randn_like", randn_like);
  bind_drawn_like<int64_t, int64_t>(m, "randint_like", randint_like, nb::arg("low"), nb::arg("high"));
  bind_drawn_like<int64_t>(m, "randint_like", randint_like, nb::arg("high"));
}

}  // namespace plugrad::python
