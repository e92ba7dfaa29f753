// Linear algebra for plugrad/linalg.py, which gives parameters and results PyTorch's names.
#include <python/bound.hpp>

#include <plugrad/ops/linalg.hpp>

#include <stdexcept>
#include <string>

namespace plugrad::python {
namespace {
using Parts = std::vector<Tensor>;

Parts slogdet(const Tensor& a) {
  const auto made = linalg::slogdet(a);
  return {made.sign, made.logabsdet};
}
Parts lu_factor(const Tensor& a) {
  const auto made = linalg::lu_factor(a);
  return {made.lu, made.pivots};
}
Parts lu(const Tensor& a) {
  const auto made = linalg::lu(a);
  return {made.p, made.l, made.u};
}
Parts qr(const Tensor& a, const std::string& mode) {
  using linalg::QrMode;
  if (mode != "reduced" && mode != "complete" && mode != "r")
    throw Error(Code::invalid, "[linalg.qr] mode '" + mode + "' is unknown: reduced, complete or r expected");
  const auto made = linalg::qr(a, mode == "r" ? QrMode::r : mode == "complete" ? QrMode::complete : QrMode::reduced);
  return {made.q, made.r};
}
Parts eigh(const Tensor& a, bool upper) {
  const auto made = linalg::eigh(a, upper);
  return {made.eigenvalues, made.eigenvectors};
}
Parts svd(const Tensor& a, bool full_matrices) {
  const auto made = linalg::svd(a, full_matrices);
  return {made.u, made.s, made.vh};
}
Parts lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond) {
  const auto made = linalg::lstsq(a, b, rcond);
  return {made.solution, made.residuals, made.rank, made.singular_values};
}

linalg::MatrixNorm norm_named(const std::string& name) {
  if (name == "fro") return linalg::MatrixNorm::frobenius;
  if (name == "nuc") return linalg::MatrixNorm::nuclear;
  throw Error(Code::invalid, "[linalg.matrix_norm] ord '" + name + "' is unknown: fro, nuc or a number expected");
}
Tensor matrix_norm_named(const Tensor& a, const std::string& ord, const Shape& axes, bool keepdim) {
  return linalg::matrix_norm(a, norm_named(ord), axes, keepdim);
}
Tensor matrix_norm(const Tensor& a, double ord, const Shape& axes, bool keepdim) {
  return linalg::matrix_norm(a, ord, axes, keepdim);
}
Tensor cond_named(const Tensor& a, const std::string& ord) { return linalg::cond(a, norm_named(ord)); }
Tensor cond(const Tensor& a, double ord) { return linalg::cond(a, ord); }

void set_linalg_error(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const linalg::LinAlgError& e) {
    const nb::object type = nb::module_::import_("plugrad.linalg").attr("LinAlgError");
    PyErr_SetString(type.ptr(), e.what());
  }
}
}  // namespace

// nanobind asks the latest translator first, so LinAlgError is translated before its base class Error.
void bind_linalg(nb::module_& m) {
  nb::register_exception_translator(set_linalg_error);
  m.def("_linalg_solve", bound(&linalg::solve));
  m.def("_linalg_inv", bound(&linalg::inv));
  m.def("_linalg_det", bound(&linalg::det));
  m.def("_linalg_slogdet", bound(&slogdet));
  m.def("_linalg_solve_triangular", bound(&linalg::solve_triangular));
  m.def("_linalg_lu_factor", bound(&lu_factor));
  m.def("_linalg_lu", bound(&lu));
  m.def("_linalg_lu_solve", bound(&linalg::lu_solve));
  m.def("_linalg_cholesky", bound(&linalg::cholesky));
  m.def("_linalg_cholesky_solve", bound(&linalg::cholesky_solve));
  m.def("_linalg_qr", bound(&qr));
  m.def("_linalg_eigh", bound(&eigh));
  m.def("_linalg_eigvalsh", bound(&linalg::eigvalsh));
  m.def("_linalg_svd", bound(&svd));
  m.def("_linalg_svdvals", bound(&linalg::svdvals));
  m.def("_linalg_pinv", bound(&linalg::pinv), nb::arg(), nb::arg().none(), nb::arg().none());
  m.def("_linalg_matrix_rank", bound(&linalg::matrix_rank), nb::arg(), nb::arg().none(), nb::arg().none());
  m.def("_linalg_lstsq", bound(&lstsq), nb::arg(), nb::arg(), nb::arg().none());
  m.def("_linalg_vector_norm", bound(&linalg::vector_norm));
  m.def("_linalg_matrix_norm", bound(&matrix_norm_named));
  m.def("_linalg_matrix_norm", bound(&matrix_norm));
  m.def("_linalg_cond", bound(&cond_named));
  m.def("_linalg_cond", bound(&cond));
  m.def("_linalg_matrix_power", bound(&linalg::matrix_power));
  m.def("_linalg_vecdot", bound(&linalg::vecdot));
  m.def("_linalg_diagonal", bound(&linalg::diagonal));
}

}  // namespace plugrad::python
