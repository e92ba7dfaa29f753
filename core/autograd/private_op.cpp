#include <plugrad/autograd/private_op.hpp>

#include <core/runtime/dispatch/private_ops.hpp>
#include <core/tensor/checked.hpp>
#include <core/tensor/impl.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/autograd/function.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace plugrad {
namespace {
using Tensors = std::vector<Tensor>;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(Code::invalid, "[" + name + "] " + why);
}

plugrad_private_op find(const DeviceState& device, const std::string& name) {
  const std::vector<plugrad_private_op> all = private_ops_of(device);
  const auto found = std::ranges::find_if(all, [&](const plugrad_private_op& each) { return name == each.name; });
  if (found != all.end()) return *found;
  std::string offered;
  for (const plugrad_private_op& each : all) offered += (offered.empty() ? "" : ", ") + std::string(each.name);
  refuse(name, "the plugin of " + device.name + " has no private op of this name; it has " +
                   (offered.empty() ? "none" : "these: " + offered));
}

std::string counted(size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

void check(const plugrad_private_op& op, const Tensors& inputs, const std::vector<PrivateResult>& results,
           const PrivateOpOptions& options) {
  if (inputs.size() != op.inputs)
    refuse(op.name, counted(inputs.size(), "input") + " given, " + std::to_string(op.inputs) + " expected");
  if (results.size() != op.outputs)
    refuse(op.name, "forms of " + counted(results.size(), "result") + " given, " + std::to_string(op.outputs) + " expected");
  if (options.attributes.size() != op.attributes)
    refuse(op.name, "attributes of " + counted(options.attributes.size(), "byte") + " given, " +
                        std::to_string(op.attributes) + " expected");
  for (const Tensor& each : inputs) {
    if (&device_of(each) != &device_of(inputs[0]))
      refuse(op.name,
             "inputs lie on " + device_of(inputs[0]).name + " and on " + device_of(each).name + ": move them to one device");
    if (!each.count()) refuse(op.name, "an input of shape " + each.shape().text() + " has no elements");
  }
  for (const PrivateResult& each : results)
    if (!each.shape.count()) refuse(op.name, "a result of shape " + each.shape.text() + " has no elements");
}

[[noreturn]] void throw_unsupported(const plugrad_private_op& op, const Tensors& results, const Tensors& inputs) {
  std::string dtypes;
  for (const Tensor& each : results) dtypes += (dtypes.empty() ? "" : ", ") + std::string(dtype_name(each.dtype()));
  for (size_t i = 0; i < inputs.size(); ++i) dtypes += (i ? ", " : " <- ") + std::string(dtype_name(inputs[i].dtype()));
  throw Error(Code::unsupported,
              "[" + std::string(op.name) + "] " + device_of(inputs[0]).name + " has no kernel for " + dtypes);
}

Tensors run(const plugrad_private_op& op, const Tensors& inputs, const std::vector<PrivateResult>& forms,
            std::vector<std::byte> attributes) {
  DeviceState& device = device_of(inputs[0]);
  Tensors results;
  for (const PrivateResult& each : forms) results.push_back(empty(device, each.shape, id_of(each.dtype)));
  std::vector<const plugrad_view*> views;
  std::vector<Storage*> storages;
  uint16_t layout = 0;
  for (const Tensors* all : {&std::as_const(results), &inputs}) {
    for (const Tensor& each : *all) {
      views.push_back(&view_of(each));
      storages.push_back(storage_of(each));
      layout |= view_of(each).layout;
    }
  }
  if (!attributes.empty()) {
    const auto size = static_cast<uint32_t>(attributes.size());
    std::memcpy(attributes.data(), &size, sizeof size);
  }
  const OpCall call{op.opcode,    op.outputs,      op.inputs,
                    views.data(), storages.data(), attributes.empty() ? nullptr : attributes.data()};
  if (!run_without_kernel(device, call, layout, PLUGRAD_OK)) throw_unsupported(op, results, inputs);
  return results;
}

// A call with a gradient stated by the caller.
class Differentiated final : public Function {
 public:
  Differentiated(const plugrad_private_op& op, const std::vector<PrivateResult>& forms, const PrivateOpOptions& options)
      : op_(op), forms_(forms), options_(options) {}
  std::string name() const override { return op_.name; }
  Tensors forward(const Tensors& inputs) override {
    Tensors results = run(op_, inputs, forms_, options_.attributes);
    Tensors saved = inputs;
    saved.insert(saved.end(), results.begin(), results.end());
    save_for_backward(std::move(saved));
    return results;
  }
  Tensors backward(const Tensors& grads) override {
    const Tensors saved = saved_tensors();
    const auto middle = saved.begin() + op_.inputs;
    return options_.gradient(grads, Tensors(saved.begin(), middle), Tensors(middle, saved.end()));
  }

 private:
  const plugrad_private_op op_;
  const std::vector<PrivateResult> forms_;
  const PrivateOpOptions options_;
};
}  // namespace

std::vector<PrivateOpInfo> private_ops(Device device) {
  std::vector<PrivateOpInfo> all;
  for (const plugrad_private_op& each : private_ops_of(state_of(device)))
    all.push_back({each.name, each.opcode, each.outputs, each.inputs, each.attributes});
  return all;
}

Tensors private_op(const std::string& name, const Tensors& inputs, const std::vector<PrivateResult>& results,
                   const PrivateOpOptions& options) {
  if (inputs.empty()) refuse(name, "a private op needs an input, whose device runs it");
  for (const Tensor& each : inputs) require_defined(each, name.c_str());
  const plugrad_private_op op = find(device_of(inputs[0]), name);
  check(op, inputs, results, options);
  if (options.gradient) return apply_function(std::make_shared<Differentiated>(op, results, options), inputs);
  return run(op, inputs, results, options.attributes);
}

}  // namespace plugrad
