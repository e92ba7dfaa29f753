// Products and distances.
#include <tests/torch/rows.hpp>

#include <cmath>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;
constexpr double kInf = HUGE_VAL;

constexpr const char* kEquations[] = {"ij,jk->ik",
                                      "ij,jk",
                                      "ij,kj->ki",
                                      "i,j->ij",
                                      "i,i->",
                                      "ij,ij->ij",
                                      "ij,ij->i",
                                      "ij,ij",
                                      "bij,bjk->bik",
                                      "bhqd,bhkd->bhqk",
                                      "ii->i",
                                      "ii",
                                      "iij->ji",
                                      "iii->i",
                                      "ij->",
                                      "ij->ji",
                                      "ba",
                                      "...ij,...jk->...ik",
                                      "...ij->...ji",
                                      "i...->...",
                                      "...,...",
                                      "b...d,d->b...",
                                      "i...j,k...j->ik...",
                                      "ij,jk,kl->il",
                                      "ni,oij,nj->no",
                                      "ij,ij,ij->j",
                                      "ij,jk->ik",
                                      "ij,ij->ij",
                                      "i,j,k->kji",
                                      "Ab,bA->Ab",
                                      " i j , j -> i ",
                                      "->",
                                      ",i->i",
                                      "ij,kl->",
                                      "ij,j->ij",
                                      "ij,jk->ik",
                                      "ij,jk->ik",
                                      "ii->i",
                                      "iji,jk->ki",
                                      "...ii->..."};

Rows einsum_rows() {
  Rows rows;
  for (const char* equation : kEquations)
    rows.push_back(
        {"einsum " + std::to_string(rows.size()) + ": " + equation, [equation](I x) { return einsum(equation, x); }});
  return rows;
}

Rows product_rows() {
  return {
      {"einsum of integers", [](I x) { return einsum("ij,kj->ik", x); }},
      {"tensordot 2", [](I x) { return tensordot(x[0], x[1]); }},
      {"tensordot 0", [](I x) { return tensordot(x[0], x[1], 0); }},
      {"tensordot lists",
       [](I x) {
         return tensordot(x[0], x[1], {2, 0}, {0, -1});
       }},
      {"tensordot all",
       [](I x) {
         return tensordot(x[0], x[1], {0, 1}, {1, 0});
       }},
      {"outer", [](I x) { return outer(x[0], x[1]); }},
      {"outer empty", [](I x) { return outer(x[0], x[1]); }},
      {"inner", [](I x) { return inner(x[0], x[1]); }},
      {"inner vectors", [](I x) { return inner(x[0], x[1]); }},
      {"inner scalar", [](I x) { return inner(x[0], x[1]); }},
      {"dot", [](I x) { return dot(x[0], x[1]); }},
      {"dot empty", [](I x) { return dot(x[0], x[1]); }},
      {"dot integers", [](I x) { return dot(x[0], x[1]); }},
      {"vdot", [](I x) { return vdot(x[0], x[1]); }},
      {"mv", [](I x) { return mv(x[0], x[1]); }},
      {"mm", [](I x) { return mm(x[0], x[1]); }},
      {"bmm", [](I x) { return bmm(x[0], x[1]); }},
      {"addmm", [](I x) { return addmm(x[0], x[1], x[2]); }},
      {"addmm scaled", [](I x) { return addmm(x[0], x[1], x[2], 0.5, -2); }},
      {"addmm beta 0", [](I x) { return addmm(x[0], x[1], x[2], 0); }},
      {"addmv", [](I x) { return addmv(x[0], x[1], x[2], 2, 3); }},
      {"baddbmm", [](I x) { return baddbmm(x[0], x[1], x[2], 2, 3); }},
      {"addcmul", [](I x) { return addcmul(x[0], x[1], x[2]); }},
      {"addcmul value", [](I x) { return addcmul(x[0], x[1], x[2], -0.5); }},
      {"addcmul integers", [](I x) { return addcmul(x[0], x[1], x[1], 3); }},
      {"addcdiv", [](I x) { return addcdiv(x[0], x[1], x[2], 0.25); }},
      {"kron", [](I x) { return kron(x[0], x[1]); }},
      {"kron ranks", [](I x) { return kron(x[0], x[1]); }},
      {"kron scalars", [](I x) { return kron(x[0], x[1]); }},
      {"kron empty", [](I x) { return kron(x[0], x[1]); }},
      {"cross last", [](I x) { return cross(x[0], x[1], -1); }},
      {"cross first", [](I x) { return cross(x[0], x[1]); }},
      {"cross axis", [](I x) { return cross(x[0], x[1], 0); }},
      {"trace", [](I x) { return trace(x[0]); }},
      {"trace integers", [](I x) { return trace(x[0]); }},
      {"trace empty", [](I x) { return trace(x[0]); }},
      {"matrix_power 0", [](I x) { return matrix_power(x[0], 0); }},
      {"matrix_power 1", [](I x) { return matrix_power(x[0], 1); }},
      {"matrix_power 5", [](I x) { return matrix_power(x[0], 5); }},
      {"multi_dot", [](I x) { return multi_dot(x); }},
      {"multi_dot vectors", [](I x) { return multi_dot(x); }},
      {"bilinear", [](I x) { return bilinear(x[0], x[1], x[2], x[3]); }},
      {"bilinear vector", [](I x) { return bilinear(x[0], x[1], x[2]); }},
  };
}

Rows distance_rows() {
  Rows rows = {
      {"dist", [](I x) { return dist(x[0], x[1]); }},
      {"dist inf", [](I x) { return dist(x[0], x[1], kInf); }},
      {"pairwise_distance", [](I x) { return pairwise_distance(x[0], x[1]); }},
      {"pairwise_distance 1", [](I x) { return pairwise_distance(x[0], x[1], 1, 0.25, true); }},
      {"cosine_similarity", [](I x) { return cosine_similarity(x[0], x[1]); }},
      {"cosine_similarity axis", [](I x) { return cosine_similarity(x[0], x[1], -2); }},
      {"cosine_similarity eps", [](I x) { return cosine_similarity(x[0], x[1], 0, 4); }},
      {"cosine_similarity zero", [](I x) { return cosine_similarity(x[0], x[1]); }},
      {"normalize", [](I x) { return normalize(x[0]); }},
      {"normalize 1", [](I x) { return normalize(x[0], 1, 0); }},
      {"normalize short", [](I x) { return normalize(x[0], 2, -1, 3); }},
      {"normalize zero", [](I x) { return normalize(x[0]); }},
      {"renorm", [](I x) { return renorm(x[0], 2, 0, 1.5); }},
      {"renorm 1", [](I x) { return renorm(x[0], 1, -1, 2.5); }},
      {"cdist batches", [](I x) { return cdist(x[0], x[1]); }},
      {"cdist ties", [](I x) { return cdist(x[0], x[1], kInf); }},
      {"cdist many", [](I x) { return cdist(x[0], x[1]); }, 1e-12, 1e-3},
      {"cdist no elements", [](I x) { return cdist(x[0], x[1]); }},
      {"cdist no rows", [](I x) { return cdist(x[0], x[1]); }},
  };
  for (const double p : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, kInf}) {
    const std::string name = p == kInf ? "inf" : std::to_string(p).substr(0, 3);
    rows.push_back({"cdist at 0, " + name, [p](I x) { return cdist(x[0], x[0].detach(), p); }});
    if (p != 0.5 && p != 1.5) rows.push_back({"cdist " + name, [p](I x) { return cdist(x[0], x[1], p); }});
  }
  return rows;
}
}  // namespace

std::vector<TorchRow> contraction_rows() {
  Rows all = einsum_rows();
  for (const Rows& more : {product_rows(), distance_rows()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plugrad::test
