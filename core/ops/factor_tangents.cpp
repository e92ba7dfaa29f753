#include <core/ops/factor_tangents.hpp>

#include <core/ops/argument.hpp>
#include <core/ops/factors.hpp>
#include <plugrad/ops/arrangement.hpp>
#include <plugrad/ops/complex.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/linalg.hpp>
#include <plugrad/ops/logic.hpp>
#include <plugrad/ops/masks.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/parts.hpp>
#include <plugrad/ops/views.hpp>

#include <string>

namespace plugrad::factor_tangents {
namespace {
Tensor turned(const Tensor& x) { return adjoint(x); }
Tensor symmetric(const Tensor& x) { return mul(add(x, turned(x)), 0.5); }
// x times the inverse of an upper triangle.
Tensor over_upper(const Tensor& x, const Tensor& upper) { return linalg::solve_triangular(upper, x, true, false); }
// x minus its part in the span of q's orthonormal columns.
Tensor beside(const Tensor& x, const Tensor& q) { return sub(x, matmul(q, matmul(turned(q), x))); }

// 1 / (b[j] - b[i]), and 0 on the diagonal.
Tensor inverse_distances(const Tensor& b) {
  const Tensor distance = sub(unsqueeze(b, -2), unsqueeze(b, -1));
  const Tensor same = eq(eye(b.size(-1), b.size(-1), b.dtype(), b.device()), 1);
  return where(same, 0, div(1, where(same, 1, distance)));
}

[[noreturn]] void refuse_shape(const char* what, const Tensor& a) {
  throw Error(Code::unsupported, std::string("[jvp] ") + what + " of shape " + a.shape().text() +
                                     " has no rule in forward mode: use reverse mode (vjp, jacrev) for this function");
}
}  // namespace

std::vector<Tensor> lu(All outputs, All inputs, All tangents) {
  const Tensor &factors = outputs[0], &a = inputs[0];
  if (a.size(-1) != a.size(-2)) refuse_shape("an LU factorisation", a);
  const Factors host("linalg.lu", a);
  const Tensor along = host.swap_rows(outputs[1], contiguous(tangents[0]));
  const Tensor lower = add(tril(factors, -1), identity_like(factors)), upper = triu(factors);
  const Tensor inner = over_upper(host.solve_triangular(factors, along, false, true), upper);
  return {add(matmul(lower, tril(inner, -1)), matmul(triu(inner), upper)), {}};
}

std::vector<Tensor> cholesky(All outputs, All, All tangents) {
  const Tensor& lower = outputs[0];
  const Tensor left = linalg::solve_triangular(lower, symmetric(tangents[0]), false);
  const Tensor inner = over_upper(left, turned(lower));
  return {matmul(lower, sub(tril(inner), mul(mul(inner, identity_like(inner)), 0.5)))};
}

std::vector<Tensor> qr(All outputs, All inputs, All tangents) {
  const Tensor &a = inputs[0], &r = outputs[1];
  if (r.size(-1) != r.size(-2) || r.size(-1) > a.size(-2)) refuse_shape("a QR factorisation", a);
  const bool has_q = outputs[0].count();
  if (has_q && outputs[0].size(-1) != r.size(-1)) refuse_shape("a complete QR factorisation", a);
  const Tensor q = has_q ? outputs[0] : over_upper(a, r), along = over_upper(tangents[0], r);
  const Tensor inner = matmul(turned(q), along), below = tril(inner, -1), rotation = sub(below, turned(below));
  return {has_q ? add(beside(along, q), matmul(q, rotation)) : Tensor(), matmul(sub(inner, rotation), r)};
}

std::vector<Tensor> eigh(All outputs, All inputs, All tangents) {
  const bool has_vectors = outputs.size() > 1;
  const Tensor& values = outputs[0];
  const Tensor vectors = has_vectors ? outputs[1] : Factors("linalg.eigh", inputs[0]).eigh(inputs[0], false)[1];
  const Tensor inner = matmul(turned(vectors), matmul(symmetric(tangents[0]), vectors));
  std::vector<Tensor> made{plugrad::diagonal(inner, 0, -2, -1)};
  if (has_vectors) made.push_back(matmul(vectors, mul(inner, inverse_distances(values))));
  return made;
}

std::vector<Tensor> svd(All outputs, All inputs, All tangents) {
  const Tensor &a = inputs[0], &s = outputs[1], &along = tangents[0];
  const bool has_vectors = outputs[0].count();
  std::vector<Tensor> found(outputs.begin(), outputs.end());
  if (!has_vectors) found = Factors("linalg.svd", a).svd(a, false, false);
  const Tensor &u = found[0], v = turned(found[2]);
  if (u.size(-1) != s.size(-1) || v.size(-1) != s.size(-1)) refuse_shape("a full singular value decomposition", a);
  const Tensor inner = matmul(turned(u), matmul(along, v));
  const Tensor of_values = plugrad::diagonal(inner, 0, -2, -1);
  if (!has_vectors) return {{}, of_values, {}};
  const Tensor columns = unsqueeze(s, -2), rows = unsqueeze(s, -1), weights = inverse_distances(mul(s, s));
  const Tensor of_u = mul(weights, add(mul(inner, columns), mul(rows, turned(inner))));
  const Tensor of_v = mul(weights, add(mul(rows, inner), mul(turned(inner), columns)));
  const Tensor made_u = add(matmul(u, of_u), div(beside(matmul(along, v), u), columns));
  const Tensor made_v = add(matmul(v, of_v), div(beside(matmul(turned(along), u), v), columns));
  return {made_u, of_values, turned(made_v)};
}

}  // namespace plugrad::factor_tangents
