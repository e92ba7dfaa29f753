// Python functions called during passes: hooks, functions with gradients of their own, checkpoints. Passes run without the
// GIL, so each call acquires the GIL.
#include <python/binding.hpp>
#include <python/held.hpp>

#include <nanobind/stl/optional.h>

#include <memory>
#include <utility>
#include <vector>

namespace plugrad::python {
namespace {

// The tensor that a function returned; None is an undefined tensor.
Tensor tensor_or_none(const nb::handle& given, const std::string& what) {
  if (given.is_none()) return {};
  if (is_tensor(given.ptr())) return tensor_in(given.ptr());
  throw nb::type_error(("[" + what + "] expected a Tensor or None, not " + type_name_of(given)).c_str());
}

nb::object tuple_of(const std::vector<Tensor>& tensors) {
  nb::list all;
  for (const Tensor& each : tensors) all.append(wrap(each));
  return nb::tuple(all);
}

// --- Hooks.

// Python's garbage collector does not find the cycle of a hook that refers to its own tensor, so a warning reports it.
HookHandle register_hook(const nb::object& self, nb::callable hook) {
  nb::module_::import_("plugrad._cycles").attr("note_hook")(hook, self);
  return nb::cast<Tensor&>(self).register_hook([held = Held(std::move(hook))](const Tensor& grad) {
    const nb::gil_scoped_acquire locked;
    return tensor_or_none(held.get()(wrap(grad)), "register_hook");
  });
}

// The hook receives the Python object on which it was registered if that object is alive, else a new object.
HookHandle register_accumulate_hook(nb::handle self, nb::callable hook) {
  const nb::object weak = nb::module_::import_("weakref").attr("ref")(self);
  return nb::cast<Tensor&>(self).register_post_accumulate_grad_hook(
      [held = Held(std::move(hook)), weak = Held(weak)](Tensor& leaf) {
        const nb::gil_scoped_acquire locked;
        const nb::object living = weak.get()();
        held.get()(living.is_none() ? wrap(leaf) : living);
      });
}

void bind_hooks(nb::module_& m, nb::class_<Tensor>& tensor) {
  nb::class_<HookHandle>(
      m, "HookHandle",
      "The result of register_hook. As a context manager, the handle removes the hook at the end of the block.")
      .def("remove", &HookHandle::remove, "Removes the hook: later passes do not call it.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> HookHandle"))
      .def("__exit__", [](HookHandle& self, const nb::args&) { self.remove(); });
  tensor
      .def("register_hook", register_hook, nb::arg("hook"),
           "Makes later passes of backward and grad call `hook(gradient)` with this tensor's complete gradient.\n\nA tensor "
           "that the hook returns replaces the gradient. Several hooks run in the order of their registration. If a hook "
           "raises, the pass ends and changes no gradient. Returns a handle whose remove() removes the hook. The hook keeps "
           "the objects alive to which it refers; a warning reports a hook that refers to its own tensor.")
      .def("register_post_accumulate_grad_hook", register_accumulate_hook, nb::arg("hook"),
           "Makes later calls of backward call `hook(tensor)` with this leaf after they have stored all gradients.\n\n"
           "Returns a handle whose remove() removes the hook. Raises ValueError for results of ops.");
}

// --- Functions.

// A call of a class derived from plugrad.Function. The context is a Python object.
class PythonFunction final : public Function {
 public:
  PythonFunction(const nb::object& type, nb::object context, nb::tuple arguments)
      : name_(nb::cast<std::string>(type.attr("__name__"))), type_(type), context_(std::move(context)),
        arguments_(std::move(arguments)) {
    for (const nb::handle each : arguments_) is_tensor_.push_back(is_tensor(each.ptr()));
  }

  std::string name() const override { return name_; }

  std::vector<Tensor> forward(const std::vector<Tensor>&) override {
    const nb::handle context = context_.get();
    context.attr("needs_input_grad") = needs();
    nb::object made = type_.get().attr("_forward")(context, arguments_);
    single_ = !nb::isinstance<nb::tuple>(made);
    results_ = single_ ? nb::make_tuple(made) : made;
    save_for_backward(tensors_in(context.attr("_saved"), "save_for_backward"));
    mark_non_differentiable(tensors_in(context.attr("_constants"), "mark_non_differentiable"));
    set_materialize_grads(nb::cast<bool>(context.attr("_materialize")));
    context.attr("_saved") = nb::tuple();
    context.attr("_constants") = nb::tuple();
    std::vector<Tensor> tensors;
    for (const nb::handle each : results_)
      if (is_tensor(each.ptr())) tensors.push_back(tensor_in(each.ptr()));
    return tensors;
  }

  // Returns the results of forward with these tensors in place of its tensors. Called once.
  nb::object take_results(const std::vector<Tensor>& tensors) {
    nb::list all;
    size_t next = 0;
    for (const nb::handle each : results_) {
      returned_tensor_.push_back(is_tensor(each.ptr()));
      all.append(returned_tensor_.back() ? wrap(tensors[next++]) : nb::borrow(each));
    }
    results_ = {};
    arguments_ = {};
    return single_ ? nb::object(all[0]) : nb::tuple(all);
  }

  std::vector<Tensor> backward(const std::vector<Tensor>& grads) override {
    const nb::gil_scoped_acquire locked;
    nb::list given;
    given.append(context_.get());
    size_t next = 0;
    for (const bool tensor : returned_tensor_) given.append(tensor ? wrap(grads[next++]) : nb::none());
    const Lent saved(context_.get(), tuple_of(saved_tensors()));
    const nb::object made = type_.get().attr("backward")(*given);
    return gradients_in(nb::isinstance<nb::tuple>(made) ? nb::borrow<nb::tuple>(made) : nb::make_tuple(made));
  }

 private:
  // Lends the saved tensors to backward for one call: a saved result that stays in the context would keep the call alive.
  class Lent {
   public:
    Lent(nb::handle context, const nb::object& saved) : context_(context) { context.attr("_saved") = saved; }
    ~Lent() { PyObject_SetAttrString(context_.ptr(), "_saved", nb::tuple().ptr()); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    nb::handle context_;
  };

  nb::object needs() const {
    nb::list all;
    size_t input = 0;
    for (const bool tensor : is_tensor_) all.append(tensor && needs_input_grad(input++));
    return nb::tuple(all);
  }

  static std::vector<Tensor> tensors_in(const nb::object& given, const char* what) {
    std::vector<Tensor> all;
    for (const nb::handle each : given) all.push_back(tensor_or_none(each, what));
    return all;
  }

  // Returns one gradient for each argument that is a tensor. As in PyTorch, more results may follow if they are None.
  std::vector<Tensor> gradients_in(const nb::tuple& made) const {
    std::vector<Tensor> all;
    for (size_t i = 0; i < made.size(); ++i) {
      if (i < is_tensor_.size() && is_tensor_[i]) all.push_back(tensor_or_none(made[i], name_));
      else if (!made[i].is_none())
        throw Error(Code::invalid, "[" + name_ + "] backward returned a gradient for argument " + std::to_string(i) +
                                       ", which is no tensor: return None there");
    }
    if (made.size() < is_tensor_.size())
      throw Error(Code::invalid, "[" + name_ + "] backward returned " + std::to_string(made.size()) + " gradients for " +
                                     std::to_string(is_tensor_.size()) + " arguments: return one or None for each");
    return all;
  }

  std::string name_;
  Held type_, context_;
  nb::object arguments_, results_;     // tuples while forward runs; null later, because a release needs the GIL
  std::vector<bool> is_tensor_;        // of the arguments
  std::vector<bool> returned_tensor_;  // of the results
  bool single_ = false;
};

nb::object apply(const nb::object& type, const nb::object& context, const nb::tuple& arguments) {
  std::vector<Tensor> inputs;
  for (const nb::handle each : arguments)
    if (is_tensor(each.ptr())) inputs.push_back(tensor_in(each.ptr()));
  const auto function = std::make_shared<PythonFunction>(type, context, arguments);
  return function->take_results(apply_function(function, inputs));
}

// --- Checkpoints and anomalies.

void run_checkpoint(nb::callable f, const std::vector<Tensor>& inputs, bool preserve_rng_state) {
  const auto run = [held = Held(std::move(f))](const std::vector<Tensor>& x) {
    const nb::gil_scoped_acquire locked;
    held.get()(*tuple_of(x));
  };
  detail::checkpoint(run, inputs, {preserve_rng_state});
}

AnomalyOptions anomaly_options(bool forward, nb::callable where) {
  return {forward, [held = Held(std::move(where))] {
            const nb::gil_scoped_acquire locked;
            return nb::cast<std::string>(held.get()());
          }};
}
}  // namespace

void bind_callbacks(nb::module_& m, nb::class_<Tensor>& tensor) {
  bind_hooks(m, tensor);
  m.def("_apply_function", apply);
  m.def("_checkpoint", run_checkpoint);
  nb::class_<DetectAnomaly>(m, "_DetectAnomaly").def("__init__", [](DetectAnomaly* self, bool forward, nb::callable where) {
    new (self) DetectAnomaly(anomaly_options(forward, std::move(where)));
  });
}

}  // namespace plugrad::python
