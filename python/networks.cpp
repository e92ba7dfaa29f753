// micrograd's Neuron, Layer and MLP.
#include <python/value.hpp>

#include <nanobind/stl/optional.h>

#include <optional>

namespace plugrad::python {
namespace {

// Calls `make`, which draws from the device's generator. With a seed, the numbers are those after manual_seed(seed), and the
// generator gets its former state back.
template <class Make> auto seeded(std::optional<uint64_t> seed, Device device, Make make) {
  if (!seed) return make();
  const GeneratorState before = generator_state(device);
  set_generator_state(device, {*seed, 0});
  struct Restore {
    ~Restore() { set_generator_state(device, state); }
    Device device;
    GeneratorState state;
  } restore{device, before};
  return make();
}

// Returns a single Value alone, and several Values as a list, as micrograd's layers do.
nb::object returned(const std::vector<Value>& out) {
  return out.size() == 1 ? wrap(out.front()) : nb::object(wrap_all(out));
}

Device device_of(const Neuron& neuron) { return neuron.b.tensor().device(); }
Device device_of(const Layer& layer) { return layer.neurons.empty() ? default_device() : device_of(layer.neurons.front()); }
Device device_of(const MLP& mlp) { return mlp.layers.empty() ? default_device() : device_of(mlp.layers.front()); }

void clear(const std::vector<Value>& parameters) {
  for (const Value& each : parameters) Tensor(each.tensor()).clear_grad();
}

template <class T> void bind_parameters(nb::class_<T>& c) {
  c.def(
       "parameters", [](const T& x) { return wrap_all(x.parameters()); },
       "Returns all weights and biases, neuron by neuron.")
      .def(
          "zero_grad", [](const T& x) { clear(x.parameters()); }, "Sets the gradients of all parameters to 0.")
      .def("__repr__", [](const T& x) { return x.text(); });
}

template <class T> nb::object call(const T& network, const nb::object& x) {
  const std::vector<Value> in = values_of(x, device_of(network));
  return returned(network(in));
}

nb::object call_neuron(const Neuron& neuron, const nb::object& x) { return wrap(neuron(values_of(x, device_of(neuron)))); }

// Returns the parts of a network as Python objects. Each object keeps the network alive.
template <class T, auto Parts> nb::list parts_of(nb::handle self) {
  nb::list all;
  for (auto& each : nb::cast<T&>(self).*Parts) all.append(nb::cast(&each, nb::rv_policy::reference_internal, self));
  return all;
}

int64_t width(const Layer& layer) {
  return layer.neurons.empty() ? 0 : static_cast<int64_t>(layer.neurons.front().w.size());
}

// A pickle holds the arguments of the constructor, the device, and the numbers of the parameters.
nb::object pickled(nb::handle self, const nb::tuple& arguments, const Device& device, const std::vector<Value>& parameters) {
  nb::list numbers;
  for (const Value& each : parameters) numbers.append(each.data());
  return nb::make_tuple(nb::module_::import_("plugrad._pickling").attr("network"),
                        nb::make_tuple(self.type(), arguments, nb::str(nb::cast(device)), numbers));
}

void bind_neuron(nb::module_& m) {
  nb::class_<Neuron> neuron(
      m, "Neuron",
      "Computes relu(w x + b) of Values, or w x + b if nonlin is False. Weights start uniform in [-1, 1), the bias at 0.\n\n"
      "seed: for the weights; without a seed the device's generator draws the weights (manual_seed).");
  neuron
      .def(
          "__init__",
          [](Neuron* self, int64_t nin, bool nonlin, const DeviceLike& device, std::optional<uint64_t> seed) {
            const Device where = device.get();
            seeded(seed, where, [&] { return new (self) Neuron(nin, nonlin, where); });
          },
          nb::arg("nin"), nb::arg("nonlin") = true, nb::arg("device") = nb::none(), nb::arg("seed") = nb::none())
      .def("__call__", call_neuron, nb::arg("x"),
           "Returns the result for as many Values or numbers as there are weights. Raises ValueError for another count.")
      .def_prop_ro(
          "w", [](const Neuron& n) { return wrap_all(n.w); }, "The weights.")
      .def_prop_ro(
          "b", [](const Neuron& n) { return wrap(n.b); }, "The bias.")
      .def_ro("nonlin", &Neuron::nonlin, "True if the neuron ends in relu.")
      .def("__reduce__", [](nb::handle self) {
        const Neuron& neuron = nb::cast<Neuron&>(self);
        return pickled(self, nb::make_tuple(neuron.w.size(), neuron.nonlin), device_of(neuron), neuron.parameters());
      });
  bind_parameters(neuron);
}

void bind_layer(nb::module_& m) {
  nb::class_<Layer> layer(m, "Layer", "Neurons with the same inputs.");
  layer
      .def(
          "__init__",
          [](Layer* self, int64_t nin, int64_t nout, bool nonlin, const DeviceLike& device, std::optional<uint64_t> seed) {
            const Device where = device.get();
            seeded(seed, where, [&] { return new (self) Layer(nin, nout, nonlin, where); });
          },
          nb::arg("nin"), nb::arg("nout"), nb::arg("nonlin") = true, nb::arg("device") = nb::none(),
          nb::arg("seed") = nb::none())
      .def("__call__", call<Layer>, nb::arg("x"), "Returns a list of Values, or a single Value for a single neuron.")
      .def_prop_ro("neurons", parts_of<Layer, &Layer::neurons>, "The neurons.")
      .def("__reduce__", [](nb::handle self) {
        const Layer& layer = nb::cast<Layer&>(self);
        const bool nonlin = layer.neurons.empty() || layer.neurons.front().nonlin;
        return pickled(self, nb::make_tuple(width(layer), layer.neurons.size(), nonlin), device_of(layer),
                       layer.parameters());
      });
  bind_parameters(layer);
}

void bind_mlp(nb::module_& m) {
  nb::class_<MLP> mlp(m, "MLP", "A sequence of layers of nouts neurons; all layers but the last end in relu.");
  mlp.def(
         "__init__",
         [](MLP* self, int64_t nin, const std::vector<int64_t>& nouts, const DeviceLike& device,
            std::optional<uint64_t> seed) {
           const Device where = device.get();
           seeded(seed, where, [&] { return new (self) MLP(nin, nouts, where); });
         },
         nb::arg("nin"), nb::arg("nouts"), nb::arg("device") = nb::none(), nb::arg("seed") = nb::none())
      .def("__call__", call<MLP>, nb::arg("x"),
           "Returns a list of Values, or a single Value if the last layer has a single neuron.")
      .def_prop_ro("layers", parts_of<MLP, &MLP::layers>, "The layers.")
      .def("__reduce__", [](nb::handle self) {
        const MLP& mlp = nb::cast<MLP&>(self);
        nb::list nouts;
        for (const Layer& each : mlp.layers) nouts.append(each.neurons.size());
        const int64_t nin = mlp.layers.empty() ? 0 : width(mlp.layers.front());
        return pickled(self, nb::make_tuple(nin, nouts), device_of(mlp), mlp.parameters());
      });
  bind_parameters(mlp);
}
}  // namespace

void bind_networks(nb::module_& m) {
  bind_neuron(m);
  bind_layer(m);
  bind_mlp(m);
}

}  // namespace plugrad::python
