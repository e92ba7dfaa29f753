// Recording modes, gradients as a function, and graphs as DOT text.
#include <python/binding.hpp>

#include <plugrad/autograd/draw.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <utility>
#include <vector>

namespace plugrad::python {
namespace {
constexpr const char *kOutput = "[autograd] an element of outputs", *kInput = "[autograd] an element of inputs";

std::vector<Tensor> tensors_of(const nb::object& given, const char* role) {
  if (nb::isinstance<Tensor>(given)) return {nb::cast<Tensor>(given)};
  std::vector<Tensor> all;
  for (const nb::handle each : given) all.push_back(taken<Tensor>(each, role, "a Tensor, or a sequence of them"));
  return all;
}

// None means seeds of ones.
std::vector<Tensor> seeds_of(const nb::object& given) {
  if (given.is_none()) return {};
  if (nb::isinstance<Tensor>(given)) return {nb::cast<Tensor>(given)};
  std::vector<Tensor> seeds;
  constexpr const char* kSeed = "[autograd] an element of grad_outputs";
  for (const nb::handle each : given)
    seeds.push_back(each.is_none() ? Tensor() : taken<Tensor>(each, kSeed, "a Tensor or None"));
  return seeds;
}

nb::object gradients(const nb::object& outputs, const nb::object& inputs, const nb::object& seeds, bool retain_graph,
                     bool create_graph, bool allow_unused) {
  const std::vector<Tensor> roots = tensors_of(outputs, kOutput), leaves = tensors_of(inputs, kInput);
  const GradOptions options{seeds_of(seeds), retain_graph, create_graph, allow_unused};
  std::vector<Tensor> found = unlocked([&] { return grad(roots, leaves, options); });
  nb::list all;
  for (Tensor& each : found) all.append(wrap(std::move(each)));
  return nb::tuple(all);
}
}  // namespace

void bind_autograd(nb::module_& m) {
  // One guard for each entered block; plugrad/_modes.py makes context managers of them.
  nb::class_<NoGrad>(m, "_NoGrad").def("__init__", [](NoGrad* self) { new (self) NoGrad; });
  nb::class_<EnableGrad>(m, "_EnableGrad").def("__init__", [](EnableGrad* self) { new (self) EnableGrad; });
  m.def("grad_enabled", &grad_enabled, "Returns whether ops are recorded on this thread.");
  m.def(
      "grad", gradients, nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = nb::none(),
      nb::arg("retain_graph") = false, nb::arg("create_graph") = false, nb::arg("allow_unused") = false,
      "Returns the gradient of the sum of the outputs for each input, as a tuple. Changes no `.grad`.\n\n"
      "grad_outputs: one tensor for each output, in the output's shape, or None for ones. create_graph: the gradients can\n"
      "be differentiated again.\n"
      "allow_unused: returns None, instead of raising ValueError, for an input that no output depends on.");
  m.def(
      "backward",
      [](const nb::object& outputs, const nb::object& seeds, bool retain_graph, bool create_graph) {
        const std::vector<Tensor> roots = tensors_of(outputs, kOutput), starts = seeds_of(seeds);
        unlocked([&] { backward(roots, starts, {retain_graph, create_graph}); });
      },
      nb::arg("outputs"), nb::arg("grad_outputs") = nb::none(), nb::arg("retain_graph") = false,
      nb::arg("create_graph") = false, "Runs backward from several tensors in one pass.");
  m.def(
      "_dot",
      [](const Tensor& root, const std::string& direction, size_t limit) {
        return unlocked([root, options = DrawOptions{direction, limit}] { return draw_dot(root, options); });
      },
      nb::arg("root"), nb::arg("direction"), nb::arg("limit"));
}

}  // namespace plugrad::python
