#include <plugrad/nn/module.hpp>

#include <core/runtime/observe/observer.hpp>
#include <core/runtime/plugins/platform.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/runtime/error.hpp>
#include <plugrad/runtime/profiler.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <typeinfo>

namespace plugrad::nn {

std::string number_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

void Members::add(std::string name, Tensor& tensor, Role role) {
  if (tensor.defined()) tensors_.push_back({std::move(name), &tensor, role});
}
void Members::operator()(std::string name, Tensor& parameter) { add(std::move(name), parameter, Role::parameter); }
void Members::operator()(std::string name, Module& module) { modules_.push_back({std::move(name), &module}); }
void Members::operator()(std::string name, const std::shared_ptr<Module>& module) {
  if (module) modules_.push_back({std::move(name), module.get()});
}
void Members::buffer(std::string name, Tensor& tensor, bool persistent) {
  add(std::move(name), tensor, persistent ? Role::buffer : Role::scratch);
}

Module::~Module() = default;

void Module::members(Members&) {}

// members() is not const because train() and to() change the members through it. Listing the members does not change them.
Members Module::own_members() const {
  Members all;
  const_cast<Module*>(this)->members(all);
  return all;
}

// --- Names.

std::vector<NamedModule> Module::named_children() const { return own_members().modules_; }

std::vector<NamedModule> Module::named_modules() const {
  std::vector<NamedModule> all{{"", const_cast<Module*>(this)}};
  for (const NamedModule& child : named_children()) {
    for (NamedModule& each : child.module->named_modules())
      all.push_back({each.name.empty() ? child.name : child.name + "." + each.name, each.module});
  }
  return all;
}

std::vector<NamedTensor> Module::collect(bool (*wanted)(Members::Role)) const {
  const Members own = own_members();
  std::vector<NamedTensor> all;
  for (const Members::TensorMember& each : own.tensors_)
    if (wanted(each.role)) all.push_back({each.name, *each.tensor});
  for (const NamedModule& child : own.modules_)
    for (NamedTensor& each : child.module->collect(wanted))
      all.push_back({child.name + "." + each.name, std::move(each.tensor)});
  return all;
}

namespace {
// Each tensor once.
std::vector<Tensor> distinct(std::vector<NamedTensor> named) {
  std::vector<Tensor> tensors;
  for (NamedTensor& each : named) {
    const auto same = [&](const Tensor& other) { return other.is_same(each.tensor); };
    if (std::ranges::none_of(tensors, same)) tensors.push_back(std::move(each.tensor));
  }
  return tensors;
}
}  // namespace

std::vector<NamedTensor> Module::named_parameters() const {
  return collect([](Members::Role role) { return role == Members::Role::parameter; });
}
std::vector<NamedTensor> Module::named_buffers() const {
  return collect([](Members::Role role) { return role != Members::Role::parameter; });
}
std::vector<Tensor> Module::parameters() const { return distinct(named_parameters()); }
std::vector<Tensor> Module::buffers() const { return distinct(named_buffers()); }
std::vector<Tensor> Module::all_tensors() const {
  return distinct(collect([](Members::Role) { return true; }));
}

std::string Module::detail() const { return ""; }

namespace {
// "Linear"
std::string class_name(const Module& module) {
  std::string name = platform::type_name(typeid(module));
  if (const size_t scope = name.rfind("::"); scope != std::string::npos) name.erase(0, scope + 2);
  return name;
}
}  // namespace

std::string Module::text() const {
  std::string inner = detail();
  for (const NamedModule& child : named_children()) {
    const bool numbered = std::ranges::all_of(child.name, [](unsigned char c) { return std::isdigit(c) != 0; });
    inner += (inner.empty() ? "" : ", ") + (numbered ? "" : child.name + "=") + child.module->text();
  }
  return class_name(*this) + "(" + inner + ")";
}

// --- Changes of all members.

void Module::apply(const std::function<void(Module&)>& function) {
  for (const NamedModule& child : named_children()) child.module->apply(function);
  function(*this);
}

void Module::train(bool mode) {
  apply([mode](Module& module) {
    if (module.training_ != mode) observe::flip_setting(reinterpret_cast<uintptr_t>(&module));
    module.training_ = mode;
  });
}

void Module::requires_grad_(bool on) {
  for (Tensor& parameter : parameters()) parameter.requires_grad_(on);
}

void Module::zero_grad() {
  for (Tensor& parameter : parameters()) parameter.clear_grad();
}

void Module::to(Device device) {
  for (Tensor& each : all_tensors()) each.move_to_(device);
}

void Module::to(DType dtype) {
  if (!is_floating(dtype))
    throw Error(Code::invalid, std::string("[to] a module cannot be ") + dtype_name(dtype) + ": give a floating dtype");
  for (Tensor& each : all_tensors())
    if (is_floating(each.dtype())) each.convert_(dtype);
}

// --- State.

std::vector<NamedTensor> Module::state_dict() const {
  std::vector<NamedTensor> state = collect([](Members::Role role) { return role != Members::Role::scratch; });
  for (NamedTensor& each : state) each.tensor = each.tensor.detach();
  return state;
}

namespace {
std::string names_or_none(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

void require_shape(const NamedTensor& own, const Tensor& given) {
  if (given.shape() == own.tensor.shape()) return;
  throw Error(Code::invalid, "[load_state_dict] " + own.name + " has shape " + own.tensor.shape().text() +
                                 ", but the new value " + given.shape().text());
}
}  // namespace

LoadResult Module::load_state_dict(const std::vector<NamedTensor>& state, bool strict) {
  std::map<std::string, Tensor> given;
  for (const NamedTensor& each : state) given.emplace(each.name, each.tensor);
  LoadResult result;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (NamedTensor& own : state_dict()) {
    const auto found = given.extract(own.name);
    if (!found || !found.mapped().defined()) {
      result.missing_keys.push_back(own.name);
      continue;
    }
    require_shape(own, found.mapped());
    copies.emplace_back(own.tensor, found.mapped());
  }
  for (const auto& [name, tensor] : given) result.unexpected_keys.push_back(name);
  if (strict && !(result.missing_keys.empty() && result.unexpected_keys.empty()))
    throw Error(Code::invalid, "[load_state_dict] missing: " + names_or_none(result.missing_keys) +
                                   "; unexpected: " + names_or_none(result.unexpected_keys));
  const NoGrad unrecorded;
  for (auto& [own, value] : copies) own.copy_(value);
  return result;
}

// --- Calls.

struct ForwardHooks {
  uint64_t last = 0;
  std::map<uint64_t, ForwardPreHook> before;
  std::map<uint64_t, ForwardHook> after;
};

void ForwardHookHandle::remove() {
  if (const std::shared_ptr<ForwardHooks> hooks = hooks_.lock()) hooks->before.erase(id_), hooks->after.erase(id_);
}

ForwardHookHandle Module::register_forward_pre_hook(ForwardPreHook hook) {
  if (!hooks_) hooks_ = std::make_shared<ForwardHooks>();
  hooks_->before.emplace(++hooks_->last, std::move(hook));
  return {hooks_, hooks_->last};
}

ForwardHookHandle Module::register_forward_hook(ForwardHook hook) {
  if (!hooks_) hooks_ = std::make_shared<ForwardHooks>();
  hooks_->after.emplace(++hooks_->last, std::move(hook));
  return {hooks_, hooks_->last};
}

Tensor Module::forward(const Tensor&) const {
  throw Error(Code::invalid, "[forward] " + text() + " defines no forward of one tensor: call it with what it takes");
}

Tensor Module::operator()(const Tensor& x) const {
  const ProfileRange range([this] { return class_name(*this); });
  if (!hooks_) return forward(x);
  const ForwardHooks hooks = *hooks_;  // a hook may remove itself
  Tensor in = x;
  for (const auto& [id, hook] : hooks.before)
    if (Tensor replaced = hook(*this, in); replaced.defined()) in = replaced;
  Tensor out = forward(in);
  for (const auto& [id, hook] : hooks.after)
    if (Tensor replaced = hook(*this, in, out); replaced.defined()) out = replaced;
  return out;
}

}  // namespace plugrad::nn
