// Modules: functions of tensors with parameters. A module is a struct with tensors and modules as members. It names them in
// members(); parameters(), state_dict() and to() follow from these names:
//
//   struct Classifier final : nn::Module {
//     nn::Conv2d conv{1, 16, 3};
//     nn::Linear out{16, 10};
//     void members(nn::Members& all) override { all("conv", conv), all("out", out); }
//     Tensor forward(const Tensor& x) const override { return out(mean(relu(conv(x)), {-1, -2})); }
//   };
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::nn {

class Module;

// "0.1", for detail().
PLUGRAD_API std::string number_text(double number);

struct NamedTensor {
  std::string name;  // "0.weight"
  Tensor tensor;
};
struct NamedModule {
  std::string name;
  Module* module;
};

// Receives a module's members, in the order of its state.
class PLUGRAD_API Members {
 public:
  // A parameter. An undefined tensor, such as a bias left out, is ignored.
  void operator()(std::string name, Tensor& parameter);
  void operator()(std::string name, Module& module);
  // A module that several modules may share; a null pointer is left out.
  void operator()(std::string name, const std::shared_ptr<Module>& module);
  // A tensor that moves with the module, but is not a parameter. persistent: whether state_dict has it.
  void buffer(std::string name, Tensor& tensor, bool persistent = true);

 private:
  friend class Module;
  enum class Role : uint8_t { parameter, buffer, scratch };
  struct TensorMember {
    std::string name;
    Tensor* tensor;
    Role role;
  };
  void add(std::string name, Tensor& tensor, Role role);
  std::vector<TensorMember> tensors_;
  std::vector<NamedModule> modules_;
};

// Called before forward with its argument, and after it with its result too. A tensor returned by a hook replaces the
// argument or the result; an undefined tensor does not.
using ForwardPreHook = std::function<Tensor(const Module& module, const Tensor& x)>;
using ForwardHook = std::function<Tensor(const Module& module, const Tensor& x, const Tensor& out)>;
struct ForwardHooks;
// Removes a hook. It does not keep the module alive.
class PLUGRAD_API ForwardHookHandle {
 public:
  ForwardHookHandle() = default;
  ForwardHookHandle(std::weak_ptr<ForwardHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  void remove();  // does nothing if it was removed before

 private:
  std::weak_ptr<ForwardHooks> hooks_;
  uint64_t id_ = 0;
};

// The names missing in a state for load_state_dict, and the unexpected names in it.
struct LoadResult {
  std::vector<std::string> missing_keys, unexpected_keys;
};

// A copy of a module shares its tensors and hooks. Several threads may call forward at once, unless a thread changes the
// module.
class PLUGRAD_API Module {
 public:
  virtual ~Module();
  // Names the members to `all`. A module without members leaves it out.
  virtual void members(Members& all);
  // Throws Error (invalid) for a module that does not define it, because its forward takes different arguments.
  virtual Tensor forward(const Tensor& x) const;
  // forward, with the hooks around it.
  Tensor operator()(const Tensor& x) const;
  // "Linear(784, 512)": the name of the class with detail() and the modules inside.
  std::string text() const;

  // All parameters with their names, the module's own parameters first. The tensors are handles: writing one in place
  // changes the module.
  std::vector<NamedTensor> named_parameters() const;
  // Each parameter once, also if several modules share it.
  std::vector<Tensor> parameters() const;
  std::vector<NamedTensor> named_buffers() const;
  std::vector<Tensor> buffers() const;
  // named_children(): the modules among the members. named_modules(): also this module, named "", and all inner modules.
  std::vector<NamedModule> named_children() const;
  std::vector<NamedModule> named_modules() const;
  // Calls function with each inner module, and then with this module.
  void apply(const std::function<void(Module&)>& function);

  // Parameters and persistent buffers by name: the same memory, outside the graph.
  std::vector<NamedTensor> state_dict() const;
  // Copies values into the parameters and buffers of the same names; devices and dtypes may differ. Throws Error (invalid),
  // and changes nothing, if a shape differs, or, if strict, a name is missing or unexpected.
  LoadResult load_state_dict(const std::vector<NamedTensor>& state, bool strict = true);

  // Sets training() of this module and all inner modules; layers such as Dropout use it.
  void train(bool mode = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  // false freezes all parameters, but they stay in parameters() and state_dict(); true lets them be trained again.
  void requires_grad_(bool on = true);
  void zero_grad();  // releases the gradients of all parameters
  // Moves parameters and buffers to a device, or converts the floating tensors to another dtype. The leaves stay the same,
  // so the handles of optimisers remain valid.
  void to(Device device);
  void to(DType dtype);

  ForwardHookHandle register_forward_pre_hook(ForwardPreHook hook);
  ForwardHookHandle register_forward_hook(ForwardHook hook);

 protected:
  // Returns the text between the parentheses of text(), before the inner modules: "784, 512".
  virtual std::string detail() const;

 private:
  Members own_members() const;
  std::vector<NamedTensor> collect(bool (*wanted)(Members::Role)) const;
  std::vector<Tensor> all_tensors() const;

  bool training_ = true;
  std::shared_ptr<ForwardHooks> hooks_;
};

}  // namespace plugrad::nn
