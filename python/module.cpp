#include <python/binding.hpp>

NB_MODULE(_plugrad, m) {
  using namespace plugrad::python;
  m.doc() = "plugrad's core.";
  bind_errors(m);
  bind_dtypes(m);
  bind_devices(m);
  auto tensor = bind_tensor(m);
  bind_functions(m, tensor);
  bind_interchange(m, tensor);
  bind_runtime(m);
  bind_autograd(m);
  bind_values(m);
  bind_networks(m);
  bind_nn(m);
  bind_optimizers(m);
  bind_io(m);
}
