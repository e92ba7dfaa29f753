// The searches of plugrad.optimize.
#include <python/binding.hpp>

#include <plugrad/optimize/least_squares.hpp>
#include <plugrad/optimize/minimize.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

namespace plugrad::python {
namespace {

using optimize::MinimizeOptions;
using TensorOf = std::function<Tensor(const Tensor&)>;

Tensor tensor_from(nb::handle given, const char* what) {
  Tensor tensor;
  if (nb::try_cast(given, tensor)) return tensor;
  double number = 0;
  if (nb::try_cast(nb::handle(given), number)) return scalar(number, DType::f64);
  throw nb::type_error(
      (std::string("[optimize] ") + what + " returned " + type_name_of(given.ptr()) + ": expected a tensor").c_str());
}

// The tensor, or an undefined one for None.
Tensor tensor_or_none(const nb::object& given) { return given.is_none() ? Tensor() : nb::cast<Tensor>(given); }

// The tensor function of a callable, or an empty function for None.
TensorOf called(const nb::object& function, const char* what) {
  if (function.is_none()) return {};
  return [function, what](const Tensor& x) { return tensor_from(function(wrap(Tensor(x))), what); };
}

// The index of a name in a list. Throws ValueError, which lists the names.
template <size_t count> size_t place_of(const std::string& name, const char* const (&names)[count], const char* what) {
  const auto found = std::ranges::find_if(names, [&](const char* each) { return name == each; });
  if (found != std::end(names)) return static_cast<size_t>(found - names);
  std::string all;
  for (const char* const each : names) all += (all.empty() ? "'" : ", '") + std::string(each) + "'";
  throw nb::value_error((std::string("[optimize] ") + what + " '" + name + "' is unknown: expected one of " + all).c_str());
}

// Reads options by their names; refuses others.
class Options {
 public:
  explicit Options(const nb::dict& given) : given_(given) {}
  template <class T> void read(const char* name, T& into) {
    names_ += (names_.empty() ? "" : ", ") + std::string(name);
    if (!given_.contains(name)) return;
    ++taken_;
    if (const nb::object value = given_[name]; !value.is_none())
      into = taken<Plain<T>>(value, std::string("[optimize] the option '") + name + "'",
                             std::is_integral_v<Plain<T>> ? "a whole number below 2^31" : "a number");
  }
  void refuse_others() const {
    if (taken_ == given_.size()) return;
    for (const auto& [key, value] : given_) {
      const std::string name = nb::cast<std::string>(nb::str(key));
      if ((", " + names_ + ",").find(", " + name + ",") == std::string::npos)
        throw nb::value_error(("[minimize] there is no option '" + name + "'; the options are: " + names_).c_str());
    }
  }

 private:
  template <class T> struct PlainOf {
    using type = T;
  };
  template <class T> struct PlainOf<std::optional<T>> {
    using type = T;
  };
  template <class T> using Plain = typename PlainOf<T>::type;
  const nb::dict& given_;
  std::string names_;
  size_t taken_ = 0;
};

MinimizeOptions options_of(const nb::dict& given) {
  MinimizeOptions options;
  Options read(given);
  read.read("gtol", options.gtol);
  read.read("ftol", options.ftol);
  read.read("xrtol", options.xrtol);
  read.read("maxiter", options.maxiter);
  read.read("maxfun", options.maxfun);
  read.read("maxcor", options.maxcor);
  read.read("maxls", options.maxls);
  read.read("initial_trust_radius", options.initial_trust_radius);
  read.read("max_trust_radius", options.max_trust_radius);
  read.read("eta", options.eta);
  read.refuse_others();
  return options;
}

std::function<bool(const Tensor&, double)> watching(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [callback](const Tensor& x, double value) { return nb::cast<bool>(callback(wrap(Tensor(x)), value)); };
}

nb::dict minimize(const Tensor& x0, const nb::object& value_and_gradient, const nb::object& hessian,
                  const nb::object& hessian_product, const std::string& method, const nb::object& lower,
                  const nb::object& upper, const nb::dict& given, const nb::object& callback) {
  constexpr const char* kMethods[] = {"bfgs", "l-bfgs-b", "trust-ncg", "trust-exact"};
  constexpr optimize::Method kValues[] = {optimize::Method::bfgs, optimize::Method::lbfgsb, optimize::Method::trust_ncg,
                                          optimize::Method::trust_exact};
  MinimizeOptions options = options_of(given);
  options.method = kValues[place_of(method, kMethods, "the method")];
  options.bounds = {tensor_or_none(lower), tensor_or_none(upper)};
  options.callback = watching(callback);
  optimize::Objective objective{
      [&](const Tensor& x) -> optimize::ValueAndGradient {
        const nb::object made = value_and_gradient(wrap(Tensor(x)));
        if (!nb::isinstance<nb::tuple>(made) || nb::len(made) != 2)
          throw nb::type_error("[minimize] with jac=True, fun must return two values: the value and its gradient");
        const nb::tuple pair = nb::cast<nb::tuple>(made);
        return {tensor_from(pair[0], "fun"), tensor_from(pair[1], "jac")};
      },
      called(hessian, "hess"),
      {}};
  if (!hessian_product.is_none())
    objective.hessian_product = [&](const Tensor& x, const Tensor& v) {
      return tensor_from(hessian_product(wrap(Tensor(x)), wrap(Tensor(v))), "hessp");
    };
  const optimize::MinimizeResult result = optimize::minimize(objective, x0, options);
  nb::dict made;
  made["message"] = result.message;
  made["success"] = result.success;
  made["status"] = result.status;
  made["fun"] = result.fun;
  made["x"] = wrap(Tensor(result.x));
  made["nit"] = result.nit;
  made["jac"] = wrap(Tensor(result.jac));
  made["nfev"] = result.nfev;
  made["njev"] = result.njev;
  made["nhev"] = result.nhev;
  return made;
}

nb::dict least_squares(const Tensor& x0, const nb::object& value, const nb::object& jacobian, const std::string& method,
                       const nb::object& lower, const nb::object& upper, const nb::tuple& tolerances,
                       const nb::object& x_scale, bool x_scale_by_jacobian, const std::string& loss, double f_scale,
                       const nb::object& max_nfev, const nb::object& callback) {
  constexpr const char *kMethods[] = {"trf", "lm"}, *kLosses[] = {"linear", "soft_l1", "huber", "cauchy", "arctan"};
  optimize::LeastSquaresOptions options;
  options.method = static_cast<optimize::LeastSquaresMethod>(place_of(method, kMethods, "the method"));
  options.loss = static_cast<optimize::Loss>(place_of(loss, kLosses, "the loss"));
  options.bounds = {tensor_or_none(lower), tensor_or_none(upper)};
  const auto tolerance = [&](size_t i) { return taken<double>(tolerances[i], "[least_squares] a tolerance", "a number"); };
  options.ftol = tolerance(0);
  options.xtol = tolerance(1);
  options.gtol = tolerance(2);
  options.x_scale = tensor_or_none(x_scale);
  options.x_scale_by_jacobian = x_scale_by_jacobian;
  options.f_scale = f_scale;
  if (!max_nfev.is_none()) options.max_nfev = taken<int64_t>(max_nfev, "[least_squares] max_nfev", "a whole number");
  options.callback = watching(callback);
  const optimize::LeastSquaresResult result =
      optimize::least_squares({called(value, "fun"), called(jacobian, "jac")}, x0, options);
  nb::dict made;
  made["message"] = result.message;
  made["success"] = result.success;
  made["status"] = result.status;
  made["fun"] = wrap(Tensor(result.fun));
  made["x"] = wrap(Tensor(result.x));
  made["cost"] = result.cost;
  made["jac"] = wrap(Tensor(result.jac));
  made["grad"] = wrap(Tensor(result.grad));
  made["optimality"] = result.optimality;
  made["active_mask"] = wrap(Tensor(result.active_mask));
  made["nfev"] = result.nfev;
  made["njev"] = result.njev;
  return made;
}
}  // namespace

void bind_optimize(nb::module_& m) {
  m.def("_minimize", minimize, nb::arg("x0"), nb::arg("value_and_gradient"), nb::arg("hessian").none(),
        nb::arg("hessian_product").none(), nb::arg("method"), nb::arg("lower").none(), nb::arg("upper").none(),
        nb::arg("options"), nb::arg("callback").none());
  m.def("_least_squares", least_squares, nb::arg("x0"), nb::arg("value"), nb::arg("jacobian"), nb::arg("method"),
        nb::arg("lower").none(), nb::arg("upper").none(), nb::arg("tolerances"), nb::arg("x_scale").none(),
        nb::arg("x_scale_by_jacobian"), nb::arg("loss"), nb::arg("f_scale"), nb::arg("max_nfev").none(),
        nb::arg("callback").none());
}

}  // namespace plugrad::python
