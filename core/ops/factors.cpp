#include <core/ops/factors.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/factor_tangents.hpp>
#include <core/ops/run.hpp>
#include <core/runtime/dispatch/linalg.hpp>
#include <core/runtime/local.hpp>
#include <core/tensor/host_task.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/views.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

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

Tensor matrices_of(const char* name, const Tensor& x, Scalars allowed) {
  require_defined(x, name);
  if (x.rank() < 2) refuse(name, "an operand has shape " + x.shape().text() + ": expected two axes or more");
  const DType dtype = floating_type(x.dtype());
  const bool is_one = part_of(dtype) == DType::f32 || part_of(dtype) == DType::f64;
  if (!is_one || (is_complex(dtype) && allowed == Scalars::real))
    refuse(name, std::string("an operand is ") + dtype_name(dtype) + ", expected f32 or f64" +
                     (allowed == Scalars::any ? ", c64 or c128" : "") + ": cast it");
  return cast(x, dtype);
}

Tensor square_matrices(const char* name, const Tensor& x, Scalars allowed) {
  const Tensor a = matrices_of(name, x, allowed);
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

System system_of(const char* name, const Tensor& matrix, const Tensor& right, Scalars allowed) {
  const Tensor a = matrices_of(name, matrix, allowed), b = matrices_of(name, right, allowed);
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
  return part_of(dtype) == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

Factors::Factors(const char* name, const Tensor& operand)
    : name_(name), home_(operand.device()), device_(&linear_algebra::device_for(home_.state(), name)),
      table_(linear_algebra::find(device_.state())), event_(EventKind::op, name, &home_.state()) {
  if (device_ != home_) event_.set_how(How::host);
}

Tensor Factors::take(const Tensor& x) const { return contiguous(to(ungraphed(x), device_)); }
Tensor Factors::give(const Tensor& x) const { return to(x, home_); }

Tensor Factors::empty(Shape batch, std::initializer_list<int64_t> extents, DType dtype) const {
  for (const int64_t extent : extents) batch.push_back(extent);
  return plugrad::empty(device_.state(), batch, static_cast<uint8_t>(dtype));
}

namespace {
// Throws LinAlgError with the first failed matrix, if any. before, after: the text around the pivot's number; after is null
// for a text without a number.
void require_none(const char* name, const Failures& failed, const char* before, const char* after) {
  const auto first = std::ranges::find_if(failed, [](int32_t each) { return each != 0; });
  if (first == failed.end()) return;
  const std::string which =
      failed.size() == 1 ? "the matrix" : "matrix " + std::to_string(first - failed.begin()) + " of the batch";
  throw linalg::LinAlgError("[" + std::string(name) + "] " + which + before +
                            (after ? std::to_string(*first - 1) + after : std::string()));
}

void check(const char* name, plugrad_status status) {
  if (status) throw_status(status, name, take_report());
}

using All = std::span<const Tensor>;
using TangentRule = std::function<std::vector<Tensor>(All outputs, All inputs, All tangents)>;

// A factorisation. Replays of a step run it again.
template <class F> class FactorTask final : public HostTask {
 public:
  FactorTask(std::string what, F f, TangentRule rule) : what_(std::move(what)), f_(std::move(f)), rule_(std::move(rule)) {}
  void call(std::span<const Tensor> operands) override { f_(operands); }
  std::string text() const override { return what_; }
  bool has_effects() const override { return false; }
  std::optional<std::vector<Tensor>> tangents(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                              std::span<const Tensor> of_inputs) const override {
    return rule_(outputs, inputs, of_inputs);
  }

 private:
  std::string what_;
  F f_;
  TangentRule rule_;
};

// f: takes the outputs, then the inputs.
template <class F>
void run_task(const char* name, const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, TangentRule rule,
              F f) {
  run_in_step(std::make_shared<FactorTask<F>>(name, std::move(f), std::move(rule)), outputs, inputs);
}

// Of y = a^-1 x, where x has been overwritten: a^-1 (the tangent of x - the tangent of a's triangle times y).
std::vector<Tensor> solved_tangents(All outputs, All inputs, All tangents, bool upper, bool unit) {
  Tensor right = tangents[1];
  if (tangents[0].defined()) {
    const Tensor triangle = upper ? triu(tangents[0], unit ? 1 : 0) : tril(tangents[0], unit ? -1 : 0);
    const Tensor taken = matmul(triangle, outputs[0]);
    right = right.defined() ? sub(right, taken) : neg(taken);
  }
  return {Factors("linalg.solve_triangular", inputs[0]).solve_triangular(inputs[0], contiguous(right), upper, unit)};
}
}  // namespace

// --- The functions of the extension.

Factors::Lu Factors::lu(const Tensor& a, Pivots allowed) const {
  const int64_t m = a.size(-2), n = a.size(-1);
  Lu made{empty(batch_of(a), {m, n}, a.dtype()), empty(batch_of(a), {std::min(m, n)}, DType::i32)};
  run_task(name_, {made.lu, made.pivots}, {a}, factor_tangents::lu,
           [name = name_, table = table_, allowed](std::span<const Tensor> all) {
             const plugrad_matrices out = matrices(all[0]), pivots = matrices(all[1], true), in = matrices(all[2]);
             Failures failed = failures(in);
             check(name, table->lu(device_of(all[2]).handle, dtype_of(all[2]), &in, &out, &pivots, failed.data()));
             if (allowed == Pivots::nonzero)
               require_none(name, failed, " is singular: its pivot ", " is 0. Use lstsq or pinv");
           });
  return made;
}

Tensor Factors::swap_rows(const Tensor& pivots, const Tensor& x, bool backwards) const {
  const Tensor swapped = clone(x);
  const auto rule = [backwards](All, All inputs, All tangents) -> std::vector<Tensor> {
    return {Factors("linalg.lu", inputs[1]).swap_rows(inputs[0], contiguous(tangents[1]), backwards)};
  };
  run_task(name_, {swapped}, {pivots, swapped}, rule,
           [name = name_, table = table_, backwards](std::span<const Tensor> all) {
             const plugrad_matrices rows = matrices(all[0]), order = matrices(all[1], true);
             const uint32_t flags = backwards ? PLUGRAD_LINALG_BACKWARDS : 0;
             check(name, table->swap_rows(device_of(all[0]).handle, dtype_of(all[0]), &order, &rows, flags));
           });
  return swapped;
}

Tensor Factors::solve_triangular(const Tensor& a, const Tensor& x, bool upper, bool unit) const {
  const Tensor solution = clone(x);
  const auto flags = static_cast<uint32_t>((upper ? PLUGRAD_LINALG_UPPER : 0) | (unit ? PLUGRAD_LINALG_UNIT : 0));
  const auto rule = [upper, unit](All outputs, All inputs, All tangents) {
    return solved_tangents(outputs, inputs, tangents, upper, unit);
  };
  run_task(name_, {solution}, {a, solution}, rule, [name = name_, table = table_, flags](std::span<const Tensor> all) {
    const plugrad_matrices solved = matrices(all[0]), matrix = matrices(all[1]);
    check(name, table->solve_triangular(device_of(all[1]).handle, dtype_of(all[1]), &matrix, &solved, flags));
  });
  return solution;
}

Tensor Factors::solve_lu(const Lu& factors, const Tensor& b) const {
  const Tensor swapped = swap_rows(factors.pivots, b);
  return solve_triangular(factors.lu, solve_triangular(factors.lu, swapped, false, true), true);
}

Tensor Factors::cholesky(const Tensor& a) const {
  const Tensor factor = empty(batch_of(a), {a.size(-2), a.size(-1)}, a.dtype());
  run_task(name_, {factor}, {a}, factor_tangents::cholesky, [name = name_, table = table_](std::span<const Tensor> all) {
    const plugrad_matrices out = matrices(all[0]), in = matrices(all[1]);
    Failures failed = failures(in);
    check(name, table->cholesky(device_of(all[1]).handle, dtype_of(all[1]), &in, &out, failed.data()));
    require_none(name, failed, " is not positive definite: its pivot ",
                 " is not positive. Use a symmetric matrix with positive eigenvalues");
  });
  return factor;
}

std::vector<Tensor> Factors::qr(const Tensor& a, bool complete, bool only_r) const {
  const int64_t m = a.size(-2), n = a.size(-1), k = complete ? m : std::min(m, n);
  std::vector<Tensor> made{empty(batch_of(a), {only_r ? 0 : m, only_r ? 0 : k}, a.dtype()),
                           empty(batch_of(a), {k, n}, a.dtype())};
  run_task(name_, made, {a}, factor_tangents::qr, [name = name_, table = table_, only_r](std::span<const Tensor> all) {
    const plugrad_matrices q = matrices(all[0]), r = matrices(all[1]), in = matrices(all[2]);
    check(name, table->qr(device_of(all[2]).handle, dtype_of(all[2]), &in, only_r ? nullptr : &q, &r));
  });
  return made;
}

std::vector<Tensor> Factors::eigh(const Tensor& a, bool only_values) const {
  const int64_t n = a.size(-1);
  std::vector<Tensor> made{empty(batch_of(a), {n}, a.dtype())};
  if (!only_values) made.push_back(empty(batch_of(a), {n, n}, a.dtype()));
  run_task(
      name_, made, {a}, factor_tangents::eigh, [name = name_, table = table_, only_values](std::span<const Tensor> all) {
        const Tensor &values = all[0], &matrix = all.back(), &vectors = all[all.size() - 2];
        const plugrad_matrices in = matrices(matrix), out = matrices(values, true), turned = matrices(vectors, only_values);
        Failures failed = failures(in);
        check(name, table->eigh(device_of(matrix).handle, dtype_of(matrix), &in, &out, only_values ? nullptr : &turned,
                                failed.data()));
        require_none(name, failed, " has no eigenvalues: the iteration did not converge, or an element is not finite",
                     nullptr);
      });
  return made;
}

std::vector<Tensor> Factors::svd(const Tensor& a, bool full, bool only_values) const {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Shape batch = batch_of(a);
  std::vector<Tensor> made{empty(batch, {only_values ? 0 : m, full ? m : k}, a.dtype()), empty(batch, {k}, a.dtype()),
                           empty(batch, {full ? n : k, only_values ? 0 : n}, a.dtype())};
  run_task(name_, made, {a}, factor_tangents::svd, [name = name_, table = table_, only_values](std::span<const Tensor> all) {
    const plugrad_matrices u = matrices(all[0]), s = matrices(all[1], true), vh = matrices(all[2]), in = matrices(all[3]);
    Failures failed = failures(in);
    check(name, table->svd(device_of(all[3]).handle, dtype_of(all[3]), &in, only_values ? nullptr : &u, &s,
                           only_values ? nullptr : &vh, failed.data()));
    require_none(name, failed, " has no singular values: the iteration did not converge, or an element is not finite",
                 nullptr);
  });
  return made;
}

}  // namespace plugrad
