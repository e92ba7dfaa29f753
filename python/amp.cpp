// Mixed precision. plugrad/amp.py makes a context manager of the guard.
#include <python/binding.hpp>

namespace plugrad::python {
namespace {

constexpr const char* kState[] = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"};

nb::dict state_of(const nn::GradScaler& scaler) {
  nb::dict state;
  if (!scaler.options().enabled) return state;
  state["scale"] = scaler.get_scale();
  state["growth_factor"] = scaler.options().growth_factor;
  state["backoff_factor"] = scaler.options().backoff_factor;
  state["growth_interval"] = scaler.options().growth_interval;
  state["_growth_tracker"] = scaler.growth_tracker();
  return state;
}

void load_state(nn::GradScaler& scaler, const nb::dict& state) {
  if (!scaler.options().enabled) return;
  for (const char* name : kState)
    if (!state.contains(name))
      throw nb::key_error((std::string("[GradScaler] the state has no '") + name +
                           "': pass what state_dict() of a scaler that is enabled returned")
                              .c_str());
  nn::GradScaler loaded({.init_scale = nb::cast<double>(state["scale"]),
                         .growth_factor = nb::cast<double>(state["growth_factor"]),
                         .backoff_factor = nb::cast<double>(state["backoff_factor"]),
                         .growth_interval = nb::cast<int64_t>(state["growth_interval"])});
  loaded.load_state(loaded.get_scale(), nb::cast<int64_t>(state["_growth_tracker"]));
  scaler = std::move(loaded);
}

void bind_scaler(nb::module_& m) {
  using nn::GradScaler;
  nb::class_<GradScaler>(m, "GradScaler",
                         "Multiplies losses by a factor, so that f16 does not round small gradients to 0, divides the\n"
                         "gradients by the factor again, and skips the step if a gradient is not finite. As in PyTorch, a\n"
                         "skipped step lowers the factor, and growth_interval steps without a skipped step raise it.")
      .def(
          "__init__",
          [](GradScaler* self, double init_scale, double growth_factor, double backoff_factor, int64_t growth_interval,
             bool enabled) { new (self) GradScaler({init_scale, growth_factor, backoff_factor, growth_interval, enabled}); },
          nb::arg("init_scale") = 65536.0, nb::arg("growth_factor") = 2.0, nb::arg("backoff_factor") = 0.5,
          nb::arg("growth_interval") = 2000, nb::arg("enabled") = true)
      .def("scale", &GradScaler::scale, nb::arg("loss"),
           "Returns the loss times the factor, in f32 or f64; the loss itself if the scaler is not enabled.")
      .def("unscale_", &GradScaler::unscale_, nb::arg("optimizer"),
           "Divides the gradients of the optimiser's parameters by the factor, in place. Call this before clipping "
           "gradients.")
      .def("step", &GradScaler::step, nb::arg("optimizer"),
           "Makes the optimiser's step if all gradients are finite. Returns whether all gradients are finite.")
      .def("update", &GradScaler::update, "Adapts the factor to the steps since the last call.")
      .def("get_scale", &GradScaler::get_scale, "Returns the factor; 1 if the scaler is not enabled.")
      .def(
          "is_enabled", [](const GradScaler& self) { return self.options().enabled; },
          "Returns whether the scaler is enabled.")
      .def("state_dict", state_of, "Returns the state for a checkpoint; an empty dict if the scaler is not enabled.")
      .def("load_state_dict", load_state, nb::arg("state_dict"),
           "Restores a state of state_dict. Does nothing if the scaler is not enabled. Raises KeyError for an incomplete "
           "state.");
}
}  // namespace

void bind_amp(nb::module_& m) {
  nb::class_<Autocast>(m, "_Autocast")
      .def(
          "__init__",
          [](Autocast* self, const DTypeLike& dtype, bool enabled, const std::string& device, bool cache) {
            new (self) Autocast({dtype.get(DType::bf16), enabled, device, cache});
          },
          nb::arg("dtype").none(), nb::arg("enabled"), nb::arg("device"), nb::arg("cache"));
  m.def("is_autocast_enabled", &autocast_enabled, "Returns whether this thread is inside `with autocast():`.");
  m.def(
      "get_autocast_dtype", [] { return DTypeObject{autocast_dtype()}; },
      "Returns the dtype of products in this thread's innermost autocast; bf16 outside of autocast.");
  bind_scaler(m);
}

}  // namespace plugrad::python
