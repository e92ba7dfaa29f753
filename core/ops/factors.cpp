#include <core/ops/factors.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/run.hpp>
#include <core/runtime/dispatch/linalg.hpp>
#include <core/runtime/local.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <limits>

namespace plugrad {
namespace {

// The matrices of a dense tensor, or its vectors along the last axis.
plugrad_matrices matrices(const Tensor& x, bool vectors = false) {
  const plugrad_view& v = view_of(x);
  const int64_t rows = vectors ? x.size(-1) : x.size(-2), columns = vectors ? 1 : x.size(-1);
  plugrad_matrices all{};
  all.data = reinterpret_cast<char*>(v.buffer) + v.offset;
  all.batch = batch_of(x, vectors ? 1 : 2).count();
  all.rows = rows;
  all.columns = columns;
  all.batch_stride = rows * columns;
  all.row_stride = columns;
  all.column_stride = 1;
  return all;
}

Failures failures(const plugrad_matrices& all) { return Failures(static_cast<size_t>(all.batch)); }

}  // namespace

Shape batch_of(const Tensor& x, int inner) {
  return Shape(std::span<const int64_t>(view_of(x).shape, static_cast<size_t>(x.rank() - inner)));
}

Tensor matrices_of(const char* name, const Tensor& x) {
  require_defined(x, name);
  if (x.rank() < 2) refuse(name, "an operand has shape " + x.shape().text() + ": expected two axes or more");
  const DType dtype = floating_type(x.dtype());
  if (dtype != DType::f32 && dtype != DType::f64)
    refuse(name, std::string("an operand is ") + dtype_name(dtype) + ", expected f32 or f64: cast it");
  return cast(x, dtype);
}

Tensor square_matrices(const char* name, const Tensor& x) {
  const Tensor a = matrices_of(name, x);
  if (a.size(-1) != a.size(-2)) refuse(name, "the matrix has shape " + a.shape().text() + ": expected a square one");
  return a;
}

namespace {
Shape with_batch(Shape batch, const Tensor& x) {
  batch.push_back(x.size(-2));
  batch.push_back(x.size(-1));
  return batch;
}
}  // namespace

System system_of(const char* name, const Tensor& matrix, const Tensor& right) {
  const Tensor a = matrices_of(name, matrix), b = matrices_of(name, right);
  if (a.device() != b.device()) throw_not_together(name, a, b);
  if (a.size(-2) != b.size(-2))
    refuse(name, "a of shape " + a.shape().text() + " and b of shape " + b.shape().text() + " do not fit: b needs " +
                     std::to_string(a.size(-2)) + " rows");
  const DType dtype = promote_types(a.dtype(), b.dtype());
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b));
  return {expand(cast(a, dtype), with_batch(batch, a)), expand(cast(b, dtype), with_batch(batch, b))};
}

bool is_vectors(const Tensor& a, const Tensor& b) {
  if (b.rank() == 1) return true;
  return b.rank() + 1 == a.rank() && std::ranges::equal(b.shape(), std::span(view_of(a).shape, view_of(a).rank - 1u));
}

Tensor identity_like(const Tensor& a) { return eye(a.size(-2), a.size(-1), a.dtype(), a.device()); }
Tensor first(const Tensor& x, int axis, int64_t count) { return slice(x, axis, 0, count); }
Tensor rest(const Tensor& x, int axis, int64_t count) { return slice(x, axis, count, x.size(axis)); }

double epsilon(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

Factors::Factors(const char* name, const Tensor& operand)
    : name_(name), home_(operand.device()), device_(&linear_algebra::device_for(home_.state(), name)),
      table_(linear_algebra::find(device_.state())), event_(EventKind::op, name, &home_.state()) {
  if (device_ != home_) event_.set_how(How::host);
}

Tensor Factors::take(const Tensor& x) const { return contiguous(to(x.detach(), device_)); }
Tensor Factors::give(const Tensor& x) const { return to(x, home_); }

Tensor Factors::empty(Shape batch, std::initializer_list<int64_t> extents, DType dtype) const {
  for (const int64_t extent : extents) batch.push_back(extent);
  return plugrad::empty(device_.state(), batch, static_cast<uint8_t>(dtype));
}

void Factors::check(plugrad_status status) const {
  if (status) throw_status(status, name_, take_report());
}

void Factors::refuse(const Failures& failed, const char* before, const char* after, bool numbered) const {
  const auto first = std::ranges::find_if(failed, [](int32_t each) { return each != 0; });
  const std::string which =
      failed.size() == 1 ? "the matrix" : "matrix " + std::to_string(first - failed.begin()) + " of the batch";
  throw linalg::LinAlgError("[" + std::string(name_) + "] " + which + before + (numbered ? std::to_string(*first - 1) : "") +
                            after);
}

void Factors::require_regular(const Failures& failed) const {
  if (std::ranges::all_of(failed, [](int32_t each) { return each == 0; })) return;
  refuse(failed, " is singular: its pivot ", " is 0. Use lstsq or pinv", true);
}

// --- The functions of the extension.

Factors::Lu Factors::lu(const Tensor& a) const {
  const int64_t m = a.size(-2), n = a.size(-1);
  Lu made{empty(batch_of(a), {m, n}, a.dtype()), empty(batch_of(a), {std::min(m, n)}, DType::i32), {}};
  const plugrad_matrices in = matrices(a), out = matrices(made.lu), pivots = matrices(made.pivots, true);
  made.failed = failures(in);
  check(table_->lu(device_.state().handle, dtype_of(a), &in, &out, &pivots, made.failed.data()));
  return made;
}

Tensor Factors::swap_rows(const Tensor& pivots, const Tensor& x, bool backwards) const {
  const Tensor swapped = clone(x);
  const plugrad_matrices order = matrices(pivots, true), rows = matrices(swapped);
  check(table_->swap_rows(device_.state().handle, dtype_of(x), &order, &rows, backwards ? PLUGRAD_LINALG_BACKWARDS : 0));
  return swapped;
}

Tensor Factors::solve_triangular(const Tensor& a, const Tensor& x, bool upper, bool unit) const {
  const Tensor solution = clone(x);
  const plugrad_matrices matrix = matrices(a), solved = matrices(solution);
  const auto flags = static_cast<uint32_t>((upper ? PLUGRAD_LINALG_UPPER : 0) | (unit ? PLUGRAD_LINALG_UNIT : 0));
  check(table_->solve_triangular(device_.state().handle, dtype_of(a), &matrix, &solved, flags));
  return solution;
}

Tensor Factors::solve_lu(const Lu& factors, const Tensor& b) const {
  const Tensor swapped = swap_rows(factors.pivots, b);
  return solve_triangular(factors.lu, solve_triangular(factors.lu, swapped, false, true), true);
}

Tensor Factors::cholesky(const Tensor& a) const {
  const Tensor factor = empty(batch_of(a), {a.size(-2), a.size(-1)}, a.dtype());
  const plugrad_matrices in = matrices(a), out = matrices(factor);
  Failures failed = failures(in);
  check(table_->cholesky(device_.state().handle, dtype_of(a), &in, &out, failed.data()));
  if (std::ranges::any_of(failed, [](int32_t each) { return each != 0; }))
    refuse(failed, " is not positive definite: its pivot ",
           " is not positive. Use a symmetric matrix with positive "
           "eigenvalues",
           true);
  return factor;
}

std::vector<Tensor> Factors::qr(const Tensor& a, bool complete, bool only_r) const {
  const int64_t m = a.size(-2), n = a.size(-1), k = complete ? m : std::min(m, n);
  std::vector<Tensor> made{empty(batch_of(a), {only_r ? 0 : m, only_r ? 0 : k}, a.dtype()),
                           empty(batch_of(a), {k, n}, a.dtype())};
  const plugrad_matrices in = matrices(a), q = matrices(made[0]), r = matrices(made[1]);
  check(table_->qr(device_.state().handle, dtype_of(a), &in, only_r ? nullptr : &q, &r));
  return made;
}

std::vector<Tensor> Factors::eigh(const Tensor& a, bool only_values) const {
  const int64_t n = a.size(-1);
  std::vector<Tensor> made{empty(batch_of(a), {n}, a.dtype())};
  if (!only_values) made.push_back(empty(batch_of(a), {n, n}, a.dtype()));
  const plugrad_matrices in = matrices(a), values = matrices(made[0], true), vectors = matrices(made.back(), only_values);
  Failures failed = failures(in);
  check(table_->eigh(device_.state().handle, dtype_of(a), &in, &values, only_values ? nullptr : &vectors, failed.data()));
  if (std::ranges::any_of(failed, [](int32_t each) { return each != 0; }))
    refuse(failed, " has no eigenvalues: the iteration did not converge, or an element is not finite", "", false);
  return made;
}

std::vector<Tensor> Factors::svd(const Tensor& a, bool full, bool only_values) const {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Shape batch = batch_of(a);
  std::vector<Tensor> made{empty(batch, {only_values ? 0 : m, full ? m : k}, a.dtype()), empty(batch, {k}, a.dtype()),
                           empty(batch, {full ? n : k, only_values ? 0 : n}, a.dtype())};
  const plugrad_matrices in = matrices(a), u = matrices(made[0]), s = matrices(made[1], true), vh = matrices(made[2]);
  Failures failed = failures(in);
  check(table_->svd(device_.state().handle, dtype_of(a), &in, only_values ? nullptr : &u, &s, only_values ? nullptr : &vh,
                    failed.data()));
  if (std::ranges::any_of(failed, [](int32_t each) { return each != 0; }))
    refuse(failed, " has no singular values: the iteration did not converge, or an element is not finite", "", false);
  return made;
}

}  // namespace plugrad
