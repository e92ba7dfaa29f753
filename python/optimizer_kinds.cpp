// The kinds of optimisers, by PyTorch's names and parameters.
#include <python/optimizers.hpp>

#include <python/parameter_groups.hpp>

#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <utility>

namespace plugrad::python {
namespace {

template <class T> using Self = nb::pointer_and_handle<T>;
using Ignored = const nb::object&;

template <class T, class Options> void construct(Self<T> self, const nb::object& params, double lr, const Options& options) {
  self.h.attr("_parameters") =
      construct_optimizer(params, [&](nn::ParameterGroups groups) { new (self.p) T(std::move(groups), lr, options); });
}

void refuse_differentiable(const char* name, bool differentiable) {
  if (differentiable)
    throw nb::value_error((std::string("[") + name +
                           "] differentiable is not supported: steps record no graph; write the "
                           "steps as a function, and use plugrad.func.grad")
                              .c_str());
}

std::pair<double, double> two(const nb::tuple& given, const char* optimizer, const char* name) {
  const std::string role = std::string("[") + optimizer + "] " + name;
  if (given.size() != 2) throw nb::value_error((role + " must be two numbers").c_str());
  const auto number = [&](size_t i) { return taken<double>(given[i], "an element of " + role, "a number"); };
  return {number(0), number(1)};
}

template <class T> void bind_adam(nb::module_& m, const char* name, const char* text, double weight_decay) {
  nb::class_<T, nn::Optimizer> bound(m, name, text);
  const auto construct_adam = [](Self<T> self, const nb::object& params, double lr, const nb::tuple& betas, double eps,
                                 double decay, bool amsgrad, Ignored, bool maximize, Ignored, bool differentiable, Ignored,
                                 bool decoupled) {
    refuse_differentiable("Adam", differentiable);
    const auto [beta1, beta2] = two(betas, "Adam", "betas");
    construct(self, params, lr, nn::AdamOptions{beta1, beta2, eps, decay, amsgrad, maximize, decoupled});
  };
  bound.def("__init__", construct_adam, nb::arg("params"), nb::arg("lr") = 1e-3,
            nb::arg("betas") = nb::make_tuple(0.9, 0.999), nb::arg("eps") = 1e-8, nb::arg("weight_decay") = weight_decay,
            nb::arg("amsgrad") = false, nb::kw_only(), nb::arg("foreach") = nb::none(), nb::arg("maximize") = false,
            nb::arg("capturable") = false, nb::arg("differentiable") = false, nb::arg("fused") = nb::none(),
            nb::arg("decoupled_weight_decay") = false);
}

void construct_muon(Self<nn::Muon> self, const nb::object& params, double lr, double weight_decay, double momentum,
                    bool nesterov, const nb::tuple& ns_coefficients, double eps, int ns_steps,
                    const nb::object& adjust_lr_fn) {
  nn::MuonOptions options{
      .weight_decay = weight_decay, .momentum = momentum, .nesterov = nesterov, .epsilon = eps, .steps = ns_steps};
  const auto set = [&](const std::string& name, double number) {
    if (name == "scale") options.scale = static_cast<nn::MuonScale>(number);
    else (name == "ns_a" ? options.a : name == "ns_b" ? options.b : options.c) = number;
  };
  write_option("ns_coefficients", ns_coefficients, set);
  write_option("adjust_lr_fn", adjust_lr_fn, set);
  construct(self, params, lr, options);
}

void bind_muon(nb::module_& m) {
  nb::class_<nn::Muon, nn::Optimizer>(m, "Muon",
                                      "Momentum whose matrix is made nearly orthogonal by Newton-Schulz steps, as "
                                      "torch.optim.Muon; computed in the dtype of the parameter, where PyTorch computes in "
                                      "bf16. Raises ValueError for parameters "
                                      "that are not matrices.")
      .def("__init__", construct_muon, nb::arg("params"), nb::arg("lr") = 1e-3, nb::arg("weight_decay") = 0.1,
           nb::arg("momentum") = 0.95, nb::arg("nesterov") = true,
           nb::arg("ns_coefficients") = nb::make_tuple(3.4445, -4.775, 2.0315), nb::arg("eps") = 1e-7,
           nb::arg("ns_steps") = 5, nb::arg("adjust_lr_fn") = nb::none());
}

void construct_lbfgs(Self<nn::LBFGS> self, const nb::object& params, double lr, int max_iter, std::optional<int> max_eval,
                     double tolerance_grad, double tolerance_change, int history_size, const nb::object& line_search_fn,
                     bool maximize) {
  nn::LBFGSOptions options{max_iter, max_eval, tolerance_grad, tolerance_change, history_size, false, maximize};
  write_option("line_search_fn", line_search_fn,
               [&](const std::string&, double number) { options.strong_wolfe = number != 0; });
  construct(self, params, lr, options);
}

void bind_lbfgs(nb::module_& m) {
  nb::class_<nn::LBFGS, nn::Optimizer>(
      m, "LBFGS",
      "The quasi-Newton method of Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4, with the moves of "
      "torch.optim.LBFGS. params: tensors of one dtype on one device, in a single group. step(closure) makes at most "
      "max_iter "
      "moves, with about max_eval evaluations, by default 1.25 max_iter. A step ends early where the largest element of the "
      "gradient is at most tolerance_grad, where the loss changes by less than tolerance_change, where no parameter changes "
      "by more than tolerance_change, or where the loss falls along the direction by less than tolerance_change per unit of "
      "length. history_size: the number of moves in the estimate of the second derivatives. line_search_fn: None moves by "
      "lr; \"strong_wolfe\" searches for a length that satisfies the strong Wolfe conditions (algorithms 3.5 and 3.6), and "
      "begins with lr.\n\nRaises ValueError for several groups, dtypes or devices, for numbers that are not positive, and "
      "for an unknown "
      "line_search_fn.")
      .def("__init__", construct_lbfgs, nb::arg("params"), nb::arg("lr") = 1.0, nb::arg("max_iter") = 20,
           nb::arg("max_eval") = nb::none(), nb::arg("tolerance_grad") = 1e-7, nb::arg("tolerance_change") = 1e-9,
           nb::arg("history_size") = 100, nb::arg("line_search_fn") = nb::none(), nb::kw_only(),
           nb::arg("maximize") = false);
}

void bind_descents(nb::module_& m) {
  nb::class_<nn::SGD, nn::Optimizer>(
      m, "SGD",
      "Stochastic gradient descent, as torch.optim.SGD. foreach and fused are accepted and ignored, here and below: the "
      "steps of all parameters are fused if the device supports it. Raises ValueError for differentiable.")
      .def(
          "__init__",
          [](Self<nn::SGD> self, const nb::object& params, double lr, double momentum, double dampening, double weight_decay,
             bool nesterov, bool maximize, Ignored, bool differentiable, Ignored) {
            refuse_differentiable("SGD", differentiable);
            construct(self, params, lr, nn::SGDOptions{momentum, weight_decay, nesterov, dampening, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-3, nb::arg("momentum") = 0.0, nb::arg("dampening") = 0.0,
          nb::arg("weight_decay") = 0.0, nb::arg("nesterov") = false, nb::kw_only(), nb::arg("maximize") = false,
          nb::arg("foreach") = nb::none(), nb::arg("differentiable") = false, nb::arg("fused") = nb::none());
  nb::class_<nn::RMSprop, nn::Optimizer>(m, "RMSprop", "RMSprop, as torch.optim.RMSprop.")
      .def(
          "__init__",
          [](Self<nn::RMSprop> self, const nb::object& params, double lr, double alpha, double eps, double weight_decay,
             double momentum, bool centered, Ignored, Ignored, bool maximize, bool differentiable) {
            refuse_differentiable("RMSprop", differentiable);
            construct(self, params, lr, nn::RMSpropOptions{alpha, eps, weight_decay, momentum, centered, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-2, nb::arg("alpha") = 0.99, nb::arg("eps") = 1e-8,
          nb::arg("weight_decay") = 0.0, nb::arg("momentum") = 0.0, nb::arg("centered") = false,
          nb::arg("capturable") = false, nb::arg("foreach") = nb::none(), nb::arg("maximize") = false,
          nb::arg("differentiable") = false);
  nb::class_<nn::Lion, nn::Optimizer>(m, "Lion",
                                      "Lion: makes steps of size lr against the sign of a mean of the gradients. Chen et "
                                      "al., Symbolic Discovery of Optimization Algorithms, 2023.")
      .def(
          "__init__",
          [](Self<nn::Lion> self, const nb::object& params, double lr, const nb::tuple& betas, double weight_decay,
             bool maximize) {
            const auto [beta1, beta2] = two(betas, "Lion", "betas");
            construct(self, params, lr, nn::LionOptions{beta1, beta2, weight_decay, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-4, nb::arg("betas") = nb::make_tuple(0.9, 0.99),
          nb::arg("weight_decay") = 0.0, nb::kw_only(), nb::arg("maximize") = false);
}

void bind_adams(nb::module_& m) {
  bind_adam<nn::Adam>(m, "Adam", "Adam, as torch.optim.Adam. See SGD for foreach and fused.", 0);
  bind_adam<nn::AdamW>(m, "AdamW", "Adam with decoupled weight decay, as torch.optim.AdamW.", 0.01);
}

void bind_adam_variants(nb::module_& m) {
  nb::class_<nn::NAdam, nn::Optimizer>(m, "NAdam", "Adam with Nesterov's momentum, as torch.optim.NAdam.")
      .def(
          "__init__",
          [](Self<nn::NAdam> self, const nb::object& params, double lr, const nb::tuple& betas, double eps,
             double weight_decay, double momentum_decay, bool decoupled_weight_decay, Ignored, bool maximize, Ignored,
             bool differentiable) {
            refuse_differentiable("NAdam", differentiable);
            const auto [beta1, beta2] = two(betas, "NAdam", "betas");
            construct(self, params, lr,
                      nn::NAdamOptions{beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 2e-3, nb::arg("betas") = nb::make_tuple(0.9, 0.999), nb::arg("eps") = 1e-8,
          nb::arg("weight_decay") = 0.0, nb::arg("momentum_decay") = 4e-3, nb::arg("decoupled_weight_decay") = false,
          nb::kw_only(), nb::arg("foreach") = nb::none(), nb::arg("maximize") = false, nb::arg("capturable") = false,
          nb::arg("differentiable") = false);
  nb::class_<nn::RAdam, nn::Optimizer>(
      m, "RAdam",
      "Adam whose first steps are not scaled while too few gradients estimate the variance, as torch.optim.RAdam.")
      .def(
          "__init__",
          [](Self<nn::RAdam> self, const nb::object& params, double lr, const nb::tuple& betas, double eps,
             double weight_decay, bool decoupled_weight_decay, Ignored, bool maximize, Ignored, bool differentiable) {
            refuse_differentiable("RAdam", differentiable);
            const auto [beta1, beta2] = two(betas, "RAdam", "betas");
            construct(self, params, lr, nn::RAdamOptions{beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-3, nb::arg("betas") = nb::make_tuple(0.9, 0.999), nb::arg("eps") = 1e-8,
          nb::arg("weight_decay") = 0.0, nb::arg("decoupled_weight_decay") = false, nb::kw_only(),
          nb::arg("foreach") = nb::none(), nb::arg("maximize") = false, nb::arg("capturable") = false,
          nb::arg("differentiable") = false);
}

void bind_adaptive(nb::module_& m) {
  nb::class_<nn::Adamax, nn::Optimizer>(m, "Adamax", "Adam by the largest gradient so far, as torch.optim.Adamax.")
      .def(
          "__init__",
          [](Self<nn::Adamax> self, const nb::object& params, double lr, const nb::tuple& betas, double eps,
             double weight_decay, Ignored, bool maximize, bool differentiable, Ignored) {
            refuse_differentiable("Adamax", differentiable);
            const auto [beta1, beta2] = two(betas, "Adamax", "betas");
            construct(self, params, lr, nn::AdamaxOptions{beta1, beta2, eps, weight_decay, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 2e-3, nb::arg("betas") = nb::make_tuple(0.9, 0.999), nb::arg("eps") = 1e-8,
          nb::arg("weight_decay") = 0.0, nb::arg("foreach") = nb::none(), nb::kw_only(), nb::arg("maximize") = false,
          nb::arg("differentiable") = false, nb::arg("capturable") = false);
  nb::class_<nn::Adagrad, nn::Optimizer>(m, "Adagrad",
                                         "Divides by the root of the sum of all squared gradients, as torch.optim.Adagrad.")
      .def(
          "__init__",
          [](Self<nn::Adagrad> self, const nb::object& params, double lr, double lr_decay, double weight_decay,
             double initial_accumulator_value, double eps, Ignored, bool maximize, bool differentiable, Ignored) {
            refuse_differentiable("Adagrad", differentiable);
            construct(self, params, lr,
                      nn::AdagradOptions{lr_decay, weight_decay, initial_accumulator_value, eps, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-2, nb::arg("lr_decay") = 0.0, nb::arg("weight_decay") = 0.0,
          nb::arg("initial_accumulator_value") = 0.0, nb::arg("eps") = 1e-10, nb::arg("foreach") = nb::none(), nb::kw_only(),
          nb::arg("maximize") = false, nb::arg("differentiable") = false, nb::arg("fused") = nb::none());
  nb::class_<nn::Adadelta, nn::Optimizer>(m, "Adadelta",
                                          "Scales by means of squared steps and gradients, as torch.optim.Adadelta.")
      .def(
          "__init__",
          [](Self<nn::Adadelta> self, const nb::object& params, double lr, double rho, double eps, double weight_decay,
             Ignored, Ignored, bool maximize, bool differentiable) {
            refuse_differentiable("Adadelta", differentiable);
            construct(self, params, lr, nn::AdadeltaOptions{rho, eps, weight_decay, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1.0, nb::arg("rho") = 0.9, nb::arg("eps") = 1e-6, nb::arg("weight_decay") = 0.0,
          nb::arg("foreach") = nb::none(), nb::kw_only(), nb::arg("capturable") = false, nb::arg("maximize") = false,
          nb::arg("differentiable") = false);
}

void bind_rprop_and_asgd(nb::module_& m) {
  nb::class_<nn::Rprop, nn::Optimizer>(
      m, "Rprop",
      "Moves each element by a step of its own against the sign of its gradient, as torch.optim.Rprop. lr: the first steps.")
      .def(
          "__init__",
          [](Self<nn::Rprop> self, const nb::object& params, double lr, const nb::tuple& etas, const nb::tuple& step_sizes,
             Ignored, Ignored, bool maximize, bool differentiable) {
            refuse_differentiable("Rprop", differentiable);
            const auto [minus, plus] = two(etas, "Rprop", "etas");
            const auto [least, most] = two(step_sizes, "Rprop", "step_sizes");
            construct(self, params, lr, nn::RpropOptions{minus, plus, least, most, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-2, nb::arg("etas") = nb::make_tuple(0.5, 1.2),
          nb::arg("step_sizes") = nb::make_tuple(1e-6, 50.0), nb::kw_only(), nb::arg("capturable") = false,
          nb::arg("foreach") = nb::none(), nb::arg("maximize") = false, nb::arg("differentiable") = false);
  nb::class_<nn::ASGD, nn::Optimizer>(m, "ASGD",
                                      "Averaged stochastic gradient descent, as torch.optim.ASGD. The state's \"ax\" is the "
                                      "mean of a parameter from step t0 on.")
      .def(
          "__init__",
          [](Self<nn::ASGD> self, const nb::object& params, double lr, double lambd, double alpha, double t0,
             double weight_decay, Ignored, bool maximize, bool differentiable, Ignored) {
            refuse_differentiable("ASGD", differentiable);
            construct(self, params, lr, nn::ASGDOptions{lambd, alpha, t0, weight_decay, maximize});
          },
          nb::arg("params"), nb::arg("lr") = 1e-2, nb::arg("lambd") = 1e-4, nb::arg("alpha") = 0.75, nb::arg("t0") = 1e6,
          nb::arg("weight_decay") = 0.0, nb::arg("foreach") = nb::none(), nb::arg("maximize") = false,
          nb::arg("differentiable") = false, nb::arg("capturable") = false);
}
}  // namespace

void bind_kinds(nb::module_& m) {
  bind_descents(m);
  bind_adams(m);
  bind_adam_variants(m);
  bind_adaptive(m);
  bind_rprop_and_asgd(m);
  bind_muon(m);
  bind_lbfgs(m);
}

}  // namespace plugrad::python
