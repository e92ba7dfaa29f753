// Activations, losses and layers.
#include <tests/torch/rows.hpp>

namespace plugrad::test {
namespace {
using Rows = std::vector<TorchRow>;
using Loss = std::function<Tensor(I x, Reduction reduction)>;

void append(Rows& rows, const Rows& more) { rows.insert(rows.end(), more.begin(), more.end()); }

Rows activation_rows() {
  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"relu6", relu6},
      {"hardsigmoid", hardsigmoid},
      {"hardswish", hardswish},
      {"softshrink", [](const Tensor& x) { return softshrink(x); }},
      {"hardshrink", [](const Tensor& x) { return hardshrink(x); }},
      {"threshold", [](const Tensor& x) { return threshold(x, 0.5, -3); }},
      {"mish", mish},
      {"selu", selu},
      {"celu", [](const Tensor& x) { return celu(x, 1.5); }},
      {"softsign", softsign},
      {"tanhshrink", tanhshrink},
      {"logsigmoid", logsigmoid},
      {"rrelu", [](const Tensor& x) { return rrelu(x); }},
      {"softshrink 1", [](const Tensor& x) { return softshrink(x, 1); }},
      {"hardshrink 0", [](const Tensor& x) { return hardshrink(x, 0); }},
  };
  Rows rows = {
      {"prelu", [](I x) { return prelu(x[0], x[1]); }},  {"prelu one", [](I x) { return prelu(x[0], x[1]); }},
      {"softmin", [](I x) { return softmin(x[0], 1); }}, {"glu", [](I x) { return glu(x[0]); }},
      {"glu axis", [](I x) { return glu(x[0], 0); }},
  };
  for (const auto& [name, function] : functions) {
    // The factors in PyTorch's derivative of hardsigmoid are rounded to f32.
    const double tolerance = std::string(name) == "hardsigmoid" ? 1e-8 : 1e-13;
    rows.push_back({name, [f = function](I x) { return f(x[0]); }, tolerance});
    rows.push_back({std::string(name) + " at kinks", [f = function](I x) { return f(x[0]); }, tolerance});
    rows.push_back({std::string(name) + " special", [f = function](I x) { return f(x[0].detach()); }});
  }
  return rows;
}

Rows reductions(const std::string& name, const Loss& loss) {
  Rows rows;
  for (const auto& [text, reduction] :
       {std::pair(" none", Reduction::none), std::pair(" mean", Reduction::mean), std::pair(" sum", Reduction::sum)})
    rows.push_back({name + text, [loss, r = reduction](I x) { return loss(x, r); }});
  return rows;
}

// Constants in the dtype of x.
Tensor signs(const Tensor& x) { return cast(f64({1, -1, 1, -1, -1, 1}, {2, 3}), x.dtype()); }

Rows number_losses() {
  Rows rows = {
      {"smooth_l1_loss beta", [](I x) { return smooth_l1_loss(x[0], x[1], Reduction::mean, 0.25); }},
      {"smooth_l1_loss 0", [](I x) { return smooth_l1_loss(x[0], x[1], Reduction::mean, 0); }},
      {"binary_cross_entropy weight",
       [](I x) {
         return binary_cross_entropy(x[0], x[1], cast(f64({1, 2, 3}), x[0].dtype()));
       }},
      {"binary_cross_entropy ends", [](I x) { return binary_cross_entropy(x[0], x[1], {}, Reduction::none); }, 1e-8},
      {"poisson_nll_loss", [](I x) { return poisson_nll_loss(x[0], x[1]); }},
      {"poisson_nll_loss full", [](I x) { return poisson_nll_loss(x[0], x[1].detach(), false, true); }},
      {"gaussian_nll_loss", [](I x) { return gaussian_nll_loss(x[0], x[1], x[2]); }},
      {"gaussian_nll_loss full", [](I x) { return gaussian_nll_loss(x[0], x[1], x[2], true, 1e-6, Reduction::none); }},
      {"gaussian_nll_loss eps", [](I x) { return gaussian_nll_loss(x[0], x[1], x[2], false, 0.5); }},
      {"kl_div batchmean", [](I x) { return kl_div(x[0], x[1], Reduction::batchmean); }},
  };
  append(rows, reductions("smooth_l1_loss", [](I x, Reduction r) { return smooth_l1_loss(x[0], x[1], r); }));
  append(rows, reductions("binary_cross_entropy", [](I x, Reduction r) { return binary_cross_entropy(x[0], x[1], {}, r); }));
  return rows;
}

Rows margin_losses() {
  Rows rows = {
      {"margin_ranking_loss tie", [](I x) { return margin_ranking_loss(x[0], x[0].detach(), signs(x[0])); }},
      {"cosine_embedding_loss vector", [](I x) { return cosine_embedding_loss(x[0], x[1], i64({1}, {})); }},
      {"triplet_margin_loss swap", [](I x) { return triplet_margin_loss(x[0], x[1], x[2], 2, 1, 1e-6, true); }},
  };
  append(rows, reductions("hinge_embedding_loss",
                          [](I x, Reduction r) { return hinge_embedding_loss(x[0], signs(x[0]), 0.75, r); }));
  append(rows, reductions("margin_ranking_loss",
                          [](I x, Reduction r) { return margin_ranking_loss(x[0], x[1], signs(x[0]), 0.5, r); }));
  append(rows, reductions("cosine_embedding_loss", [](I x, Reduction r) {
           return cosine_embedding_loss(x[0], x[1], select(signs(x[0]), 1, 0), -0.5, r);
         }));
  append(rows, reductions("triplet_margin_loss",
                          [](I x, Reduction r) { return triplet_margin_loss(x[0], x[1], x[2], 1, 2, 1e-6, false, r); }));
  append(rows, reductions("soft_margin_loss", [](I x, Reduction r) { return soft_margin_loss(x[0], signs(x[0]), r); }));
  return rows;
}

Rows class_losses() {
  Rows rows = {
      {"multi_margin_loss 2",
       [](I x) {
         return multi_margin_loss(x[0], i64({2, 0}), 2, 0.5, cast(f64({1, 2, 3}), x[0].dtype()));
       }},
      {"multi_margin_loss vector", [](I x) { return multi_margin_loss(x[0], i64({1}, {})); }},
      {"multilabel_margin_loss vector",
       [](I x) {
         return multilabel_margin_loss(x[0], i64({1, 2, 0}));
       }},
      {"multilabel_soft_margin_loss weight", [](I x) { return multilabel_soft_margin_loss(x[0], x[1].detach(), x[2]); }},
  };
  append(rows, reductions("multi_margin_loss", [](I x, Reduction r) {
           return multi_margin_loss(x[0], i64({2, 0}), 1, 1, {}, r);
         }));
  append(rows, reductions("multilabel_margin_loss", [](I x, Reduction r) {
           return multilabel_margin_loss(x[0], i64({3, 0, -1, 1, -1, 2, 0, 1}, {2, 4}), r);
         }));
  append(rows, reductions("multilabel_soft_margin_loss",
                          [](I x, Reduction r) { return multilabel_soft_margin_loss(x[0], x[1].detach(), {}, r); }));
  return rows;
}

Tensor table_of_bags() { return i64({1, 0, 3, 2, 2, 1}, {2, 3}); }

Rows layer_rows() {
  Rows rows = {
      {"instance_norm", [](I x) { return instance_norm(x[0], {}, {}, x[1], x[2]); }, 1e-12},
      {"instance_norm running",
       [](I x) {
         const DType dtype = x[0].dtype();
         return instance_norm(x[0], cast(f64({1, -1}), dtype), cast(f64({0.5, 2}), dtype), {}, {}, false);
       }},
      {"local_response_norm", [](I x) { return local_response_norm(x[0], 3, 0.5); }},
      {"local_response_norm even", [](I x) { return local_response_norm(x[0], 2, 0.5, 0.5, 2); }},
      {"embedding padding", [](I x) { return embedding(x[0], table_of_bags(), -2); }},
      {"embedding_bag last",
       [](I x) {
         return embedding_bag(x[0], i64({1, 0, 3, 2, 2}), i64({0, 3, 5}), BagMode::mean, {}, true);
       }},
      {"embedding_bag weights", [](I x) { return embedding_bag(x[0], table_of_bags(), {}, BagMode::sum, x[1]); }},
      {"embedding_bag empty",
       [](I x) {
         return embedding_bag(x[0], i64({}), i64({0, 0}), BagMode::max);
       }},
  };
  for (const auto& [name, mode] :
       {std::pair("sum", BagMode::sum), std::pair("mean", BagMode::mean), std::pair("max", BagMode::max)}) {
    const Tensor flat = i64({1, 0, 3, 2, 2}), starts = i64({0, 2, 2, 4});
    rows.push_back(
        {std::string("embedding_bag ") + name, [m = mode](I x) { return embedding_bag(x[0], table_of_bags(), {}, m); }});
    rows.push_back({std::string("embedding_bag offsets ") + name,
                    [m = mode, flat, starts](I x) { return embedding_bag(x[0], flat, starts, m); }});
    rows.push_back({std::string("embedding_bag padding ") + name,
                    [m = mode, flat, starts](I x) { return embedding_bag(x[0], flat, starts, m, {}, false, 0); }});
  }
  return rows;
}
}  // namespace

std::vector<TorchRow> network_rows() {
  Rows all = activation_rows();
  for (const Rows& more : {number_losses(), margin_losses(), class_losses(), layer_rows()}) append(all, more);
  return all;
}

}  // namespace plugrad::test
