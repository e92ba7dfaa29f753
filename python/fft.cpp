// Fourier transforms for plugrad/fft.py, which gives parameters NumPy's and PyTorch's names.
#include <python/bound.hpp>

#include <plugrad/ops/fft.hpp>

#include <optional>
#include <string>

namespace plugrad::python {
namespace {

fft::Norm norm_named(const char* name, const std::string& norm) {
  if (norm == "backward") return fft::Norm::backward;
  if (norm == "forward") return fft::Norm::forward;
  if (norm == "ortho") return fft::Norm::ortho;
  throw Error(Code::invalid,
              std::string("[fft.") + name + "] norm '" + norm + "' is unknown: backward, forward or ortho expected");
}

using Line = Tensor (*)(const Tensor&, std::optional<int64_t>, int, fft::Norm);
using Lines = Tensor (*)(const Tensor&, const Shape&, const Shape&, fft::Norm);

template <Line function> void bind(nb::module_& m, const char* bound_name, const char* name) {
  m.def(
      bound_name,
      [name](const Tensor& x, std::optional<int64_t> n, int axis, const std::string& norm) {
        const fft::Norm how = norm_named(name, norm);
        return unlocked([x, n, axis, how] { return function(x, n, axis, how); });
      },
      nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
}
template <Lines function> void bind(nb::module_& m, const char* bound_name, const char* name) {
  m.def(bound_name, [name](const Tensor& x, const ShapeLike& s, const ShapeLike& dim, const std::string& norm) {
    const Shape sizes = s.get(), axes = dim.get();
    const fft::Norm how = norm_named(name, norm);
    return unlocked([x, sizes, axes, how] { return function(x, sizes, axes, how); });
  });
}
}  // namespace

void bind_fft(nb::module_& m) {
  bind<fft::fft>(m, "_fft_fft", "fft");
  bind<fft::ifft>(m, "_fft_ifft", "ifft");
  bind<fft::rfft>(m, "_fft_rfft", "rfft");
  bind<fft::irfft>(m, "_fft_irfft", "irfft");
  bind<fft::hfft>(m, "_fft_hfft", "hfft");
  bind<fft::ihfft>(m, "_fft_ihfft", "ihfft");
  bind<fft::fftn>(m, "_fft_fftn", "fftn");
  bind<fft::ifftn>(m, "_fft_ifftn", "ifftn");
  bind<fft::rfftn>(m, "_fft_rfftn", "rfftn");
  bind<fft::irfftn>(m, "_fft_irfftn", "irfftn");
  bind<fft::hfftn>(m, "_fft_hfftn", "hfftn");
  bind<fft::ihfftn>(m, "_fft_ihfftn", "ihfftn");
  m.def("_fft_fftfreq", bound(&fft::fftfreq));
  m.def("_fft_rfftfreq", bound(&fft::rfftfreq));
  m.def("_fft_fftshift", bound(&fft::fftshift));
  m.def("_fft_ifftshift", bound(&fft::ifftshift));
}

}  // namespace plugrad::python
