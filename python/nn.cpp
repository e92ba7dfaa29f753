// Optimisers, and the parts of the core that modules need.
#include <python/binding.hpp>

#include <nanobind/stl/optional.h>

namespace plugrad::python {
namespace {

std::vector<Tensor> parameters_of(const nb::object& given) {
  if (nb::isinstance<Tensor>(given))
    throw nb::type_error("[optimizer] an iterable of tensors is expected, not a tensor: write [tensor]");
  std::vector<Tensor> all;
  for (const nb::handle each : given) {
    if (!nb::isinstance<Tensor>(each))
      throw nb::type_error("[optimizer] an iterable of tensors is expected, such as model.parameters()");
    all.push_back(nb::cast<Tensor>(each));
  }
  if (all.empty()) throw nb::value_error("[optimizer] no parameters were given");
  return all;
}

nb::dict state_of(const nn::Optimizer& optimizer) {
  nb::dict state;
  for (const nn::NamedTensor& each : optimizer.state()) state[each.name.c_str()] = nb::cast(each.tensor);
  return state;
}

void load_state(nn::Optimizer& optimizer, const nb::dict& state, int64_t steps) {
  std::vector<nn::NamedTensor> all;
  for (const auto& [name, tensor] : state) all.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(tensor)});
  optimizer.load_state(all, steps);
}

// The optimiser keeps the Python objects, so that a pickle of a model and its optimiser has each parameter once.
template <class T, class Options>
void construct(nb::pointer_and_handle<T> self, const nb::object& parameters, double lr, const Options& options) {
  const nb::object listed = nb::isinstance<Tensor>(parameters) ? parameters : nb::object(nb::list(parameters));
  new (self.p) T(parameters_of(listed), lr, options);
  self.h.attr("_parameters") = listed;
}

template <class T>
void construct_adam(nb::pointer_and_handle<T> self, const nb::object& parameters, double lr, const nb::tuple& betas,
                    double eps, double weight_decay) {
  if (betas.size() != 2) throw nb::value_error("[adam] betas must be two numbers");
  construct(self, parameters, lr,
            nn::AdamOptions{nb::cast<double>(betas[0]), nb::cast<double>(betas[1]), eps, weight_decay});
}

nb::dict options_of(const nn::Sgd& optimizer) {
  const nn::SgdOptions& options = optimizer.options();
  nb::dict named;
  named["momentum"] = options.momentum;
  named["weight_decay"] = options.weight_decay;
  named["nesterov"] = options.nesterov;
  return named;
}

nb::dict options_of(const nn::Adam& optimizer) {
  const nn::AdamOptions& options = optimizer.options();
  nb::dict named;
  named["betas"] = nb::make_tuple(options.beta1, options.beta2);
  named["eps"] = options.epsilon;
  named["weight_decay"] = options.weight_decay;
  return named;
}

template <class T> nb::object pickled(nb::handle self) {
  const T& optimizer = nb::cast<T&>(self);
  return nb::make_tuple(nb::module_::import_("plugrad._pickling").attr("optimizer"),
                        nb::make_tuple(self.type(), self.attr("_parameters"), optimizer.rate(), options_of(optimizer),
                                       state_of(optimizer), optimizer.steps()));
}
}  // namespace

void bind_nn(nb::module_& m) {
  m.def(
      "_linear",
      [](int64_t in, int64_t out, bool bias, const DTypeLike& dtype, const DeviceLike& device) {
        const nn::Linear made(in, out, bias, dtype.get(DType::f32), device.get());
        return nb::make_tuple(made.weight, wrap(made.bias));
      },
      nb::arg("in_features"), nb::arg("out_features"), nb::arg("bias"), nb::arg("dtype").none(), nb::arg("device").none(),
      "Weight and bias of a new linear layer.");
  m.def("cosine_rate", &nn::cosine_rate, nb::arg("base"), nb::arg("step"), nb::arg("steps"), nb::arg("floor") = 0.0,
        "The learning rate of a cosine schedule at `step` of `steps`, from base down to floor.");
}

void bind_optimizers(nb::module_& m) {
  nb::class_<nn::Optimizer>(m, "Optimizer", nb::dynamic_attr(),
                              "Updates parameters in place. A parameter stays as it is if it has no gradient, or is frozen "
                              "by requires_grad_(False).\n\nRaises ValueError for tensors that are no leaves or require no "
                              "gradient, and for rates and other options that are negative or not finite.")
      .def(
          "step", [](nn::Optimizer& o) { unlocked([&o] { o.step(); }); }, "Makes one step with the current gradients.")
      .def("zero_grad", &nn::Optimizer::clear_grad, "Drops the gradients of all parameters.")
      .def_prop_rw("lr", &nn::Optimizer::rate, &nn::Optimizer::set_rate, "The learning rate.")
      .def_prop_ro("steps", &nn::Optimizer::steps, "How many steps were made.")
      .def("state_dict", state_of, "Returns what a checkpoint needs beside the parameters and `steps`: tensors by name.")
      .def(
          "load_state_dict", load_state, nb::arg("state"), nb::arg("steps"),
          "Restores what state_dict returned. Raises ValueError, which names a tensor that is missing or has another shape; "
          "nothing is changed then.");
  nb::class_<nn::Sgd, nn::Optimizer>(m, "SGD", "Stochastic gradient descent, as torch.optim.SGD with dampening 0.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::Sgd> self, const nb::object& parameters, double lr, double momentum,
             double weight_decay, bool nesterov) {
            construct(self, parameters, lr, nn::SgdOptions{momentum, weight_decay, nesterov});
          },
          nb::arg("parameters"), nb::arg("lr"), nb::arg("momentum") = 0.0, nb::arg("weight_decay") = 0.0,
          nb::arg("nesterov") = false)
      .def("__reduce__", pickled<nn::Sgd>);
  nb::class_<nn::Adam, nn::Optimizer>(m, "Adam", "As torch.optim.Adam.")
      .def("__init__", construct_adam<nn::Adam>, nb::arg("parameters"), nb::arg("lr") = 1e-3,
           nb::arg("betas") = nb::make_tuple(0.9, 0.999), nb::arg("eps") = 1e-8, nb::arg("weight_decay") = 0.0)
      .def("__reduce__", pickled<nn::Adam>);
  nb::class_<nn::AdamW, nn::Optimizer>(m, "AdamW", "Adam with decoupled weight decay, as torch.optim.AdamW.")
      .def("__init__", construct_adam<nn::AdamW>, nb::arg("parameters"), nb::arg("lr") = 1e-3,
           nb::arg("betas") = nb::make_tuple(0.9, 0.999), nb::arg("eps") = 1e-8, nb::arg("weight_decay") = 0.01)
      .def("__reduce__", pickled<nn::AdamW>);
}

}  // namespace plugrad::python
