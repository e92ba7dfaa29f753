// Special functions, tensors of rank 0, and further parameters.
#include <tests/torch/rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;
using Unary = Tensor (*)(const Tensor&);

// The kernels of SIN and EXP and PyTorch's series have errors of a few units in the last place. Poles and tails increase
// them.
constexpr double kTolerance = 1e-11, kSingleTolerance = 2e-4;
// PyTorch's trigamma and ndtri are accurate to only ten digits: its trigamma(1) is pi^2 / 6 + 1e-10.
constexpr double kTenDigits = 1e-9;
// Near -1 and 1 the inverse function also increases the rounding error of its argument.
constexpr double kInverseTolerance = 2e-2;
double tolerance_of(const std::string& name) { return name == "digamma" || name == "ndtri" ? kTenDigits : kTolerance; }
double single_tolerance_of(const std::string& name) { return name == "erfinv" ? kInverseTolerance : kSingleTolerance; }

Rows function_rows() {
  Rows rows = {
      {"mvlgamma", [](I x) { return mvlgamma(x[0], 3); }, kTolerance, kSingleTolerance},
      {"polygamma 0", [](I x) { return polygamma(0, x[0]); }, kTenDigits, kSingleTolerance},
      {"polygamma 1", [](I x) { return polygamma(1, x[0]); }, kTenDigits, kSingleTolerance},
      {"polygamma 2", [](I x) { return polygamma(2, x[0]); }, kTolerance, kSingleTolerance},
      {"polygamma 4", [](I x) { return polygamma(4, x[0]); }, kTolerance, kSingleTolerance},
      {"xlog1py", [](I x) { return xlog1py(x[0], x[1]); }},
  };
  const std::pair<const char*, Unary> functions[] = {
      {"erfc", erfc}, {"erfcx", erfcx}, {"erfinv", erfinv}, {"ndtr", ndtr}, {"log_ndtr", log_ndtr}, {"ndtri", ndtri},
      {"lgamma", lgamma}, {"digamma", digamma}, {"sinc", sinc}, {"i0", i0}, {"i0e", i0e}, {"i1", i1}, {"i1e", i1e},
      {"entr", entr},
  };
  for (const auto& [name, function] : functions) {
    rows.push_back({name, [f = function](I x) { return f(x[0]); }, tolerance_of(name), single_tolerance_of(name)});
    if (const std::string text = name; text != "erfcx" && text != "log_ndtr" && text != "i0" && text != "i1")
      rows.push_back({text + " ends", [f = function](I x) { return f(x[0].detach()); }});
  }
  return rows;
}

Rows scalar_rows() {
  return {
      {"scalar sum", [](I x) { return sum(x[0], {0}, true); }},
      {"scalar amax", [](I x) { return amax(x[0], {-1}); }},
      {"scalar softmax", [](I x) { return softmax(x[0], 0); }},
      {"scalar log_softmax", [](I x) { return log_softmax(x[0], -1); }},
      {"scalar prod", [](I x) { return prod(x[0], {0}); }},
      {"scalar var", [](I x) { return var(x[0], {0}, false, 0); }},
      {"scalar logsumexp", [](I x) { return logsumexp(x[0], {0}); }},
      {"scalar norm", [](I x) { return norm(x[0], 2, {0}); }},
      {"scalar quantile", [](I x) { return quantile(x[0], 0.5, {-1}); }},
      {"scalar argmax", [](I x) { return argmax(x[0], {0}); }},
      {"scalar all", [](I x) { return all(x[0], {-1}); }},
      {"scalar normalize", [](I x) { return normalize(x[0], 2, 0); }},
      {"scalar transpose", [](I x) { return transpose(x[0], 0, -1); }},
      {"scalar unfold", [](I x) { return unfold(x[0], 0, 1, 1); }},
      {"scalar gather", [](I x) { return gather(x[0], 0, zeros({1}, DType::i64, x[0].device())); }},
      {"scalar scatter_add", [](I x) { return scatter_add(x[0], 0, zeros({}, DType::i64, x[0].device()), x[1]); }},
  };
}

Rows arithmetic() {
  return {
      {"addbmm", [](I x) { return addbmm(x[0], x[1], x[2], 0.5, 2); }},
      {"addr", [](I x) { return addr(x[0], x[1], x[2], 0.5, 2); }},
      {"rsub", [](I x) { return rsub(x[0], x[1], 2); }},
      {"ldexp", [](I x) { return ldexp(x[0], x[1]); }},
      {"clamp_min", [](I x) { return clamp_min(x[0], 0.25); }},
      {"clamp_min tensor", [](I x) { return clamp_min(x[0], x[1]); }},
      {"clamp_max", [](I x) { return clamp_max(x[0], 0.25); }},
      {"clamp_max tensor", [](I x) { return clamp_max(x[0], x[1]); }},
      {"angle", [](I x) { return angle(x[0]); }},
      {"round", [](I x) { return round(x[0], 2); }},
      {"round tens", [](I x) { return round(x[0] * 100, -1); }},
      {"logit eps", [](I x) { return logit(x[0], 0.6); }},
      {"norm 0", [](I x) { return norm(x[0], 0, {1}); }},
      {"prod none", [](I x) { return prod(x[0], {0}); }},
      {"tensordot ones", [](I x) { return tensordot(x[0], x[1], {0, 1}, {1, 0}); }},
  };
}

Outputs parts(const Histogram& made) { return std::vector<Tensor>{made.hist, made.bin_edges}; }

Tensor reduced(I x, ScatterReduction reduce) { return index_reduce(x[0], 1, i64({2, 0, 2}, {3}), x[1], reduce); }

Rows arrangement() {
  return {
      {"diagflat", [](I x) { return diagflat(x[0], -1); }},
      {"cumulative_trapezoid", [](I x) { return cumulative_trapezoid(x[0], 0.5, 0); }},
      {"cumulative_trapezoid points", [](I x) { return cumulative_trapezoid(x[0], x[1]); }},
      {"index_reduce prod", [](I x) { return reduced(x, ScatterReduction::prod); }},
      {"index_reduce mean", [](I x) { return reduced(x, ScatterReduction::mean); }},
      {"index_reduce amax", [](I x) { return reduced(x, ScatterReduction::amax); }},
      {"index_reduce amin", [](I x) { return reduced(x, ScatterReduction::amin); }},
      {"index_reduce without",
       [](I x) { return index_reduce(x[0], 0, i64({1, 1}, {2}), x[1], ScatterReduction::mean, false); }},
      {"nonzero_static", [](I x) { return nonzero_static(x[0], 5, -7); }},
      {"nonzero_static few", [](I x) { return nonzero_static(x[0], 2); }},
      {"masked_fill tensor",
       [](I x) { return masked_fill(x[0], of(DType::boolean, {0, 1, 1, 1, 0, 0}, {2, 3}), x[1]); }},
      {"diff none", [](I x) { return diff(x[0], 0, -1, x[0]); }},
      {"cat with no elements", [](I x) { return cat({x[0], x[1]}, 1); }},
      {"histogram", [](I x) { return parts(histogram(x[0], 4)); }},
      {"histogram range", [](I x) { return parts(histogram(x[0], 3, {-1, 1.5}, x[1], true)); }},
      {"histogram edges", [](I x) { return parts(histogram(x[0], x[1])); }},
  };
}
}  // namespace

std::vector<TorchRow> special_rows() {
  Rows rows = function_rows();
  for (const Rows& more : {scalar_rows(), arithmetic(), arrangement()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace plugrad::test
