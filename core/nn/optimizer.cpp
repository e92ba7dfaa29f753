#include <plugrad/nn/optimizer.hpp>

#include <core/runtime/observe/observer.hpp>
#include <core/runtime/observe/step_part.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>
#include <utility>

namespace plugrad::nn {
namespace {
void require_parameter(const Tensor& x, size_t i) {
  const std::string which = "[optimizer] parameter " + std::to_string(i);
  if (!x.defined()) throw Error(Code::invalid, which + " is undefined");
  if (!x.is_leaf())
    throw Error(Code::invalid, which + " of shape " + x.shape().text() + " is the result of " + x.op_name() +
                                   ": pass the tensors that it was computed from, or detach() it first");
  if (!x.requires_grad() && !is_parameter(x))
    throw Error(Code::invalid, which + " of shape " + x.shape().text() +
                                   " requires no gradient, so no step would change it: call requires_grad_() on it");
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}
}  // namespace

Optimizer::Optimizer(const char* name, std::vector<Option> options, std::vector<Slot> slots)
    : name_(name), slots_(std::move(slots)), options_(std::move(options)) {}

Optimizer::~Optimizer() = default;

// A compiled step refers to its optimisers.
Optimizer::Captured::~Captured() {
  if (is) ++observe::changes;
}
Optimizer::Captured& Optimizer::Captured::operator=(const Captured&) {
  if (is) ++observe::changes;
  return *this;
}

// --- Groups and their options.

void Optimizer::require_option(size_t option, double value) const {
  const Option& expected = options_[option];
  if (value >= 0 && value < expected.below) return;
  std::ostringstream text;
  text << "[" << name_ << "] " << expected.name << " is " << value << ": expected a finite number of at least 0";
  if (std::isfinite(expected.below)) text << " and below " << expected.below;
  throw Error(Code::invalid, text.str());
}

size_t Optimizer::index_of(std::string_view name) const {
  const auto found = std::ranges::find(options_, name, [](const Option& each) { return std::string_view(each.name); });
  if (found == options_.end())
    throw Error(Code::invalid, std::string("[") + name_ + "] there is no option '" + std::string(name) +
                                   "'; the options are: " + joined(option_names()));
  return static_cast<size_t>(found - options_.begin());
}

void Optimizer::add_param_group(ParameterGroup group) {
  Group added{std::move(group.parameters), {}, {}};
  for (const Option& each : options_) added.options.push_back(each.value);
  for (const auto& [name, value] : group.options) added.options[index_of(name)] = value;
  for (size_t i = 0; i < added.options.size(); ++i) require_option(i, added.options[i]);
  check(added.options);
  const std::vector<Tensor> before = all_parameters();
  for (size_t i = 0; i < added.parameters.size(); ++i) {
    const Tensor& each = added.parameters[i];
    require_parameter(each, before.size() + i);
    const auto is_each = [&](const Tensor& other) { return other.is_same(each); };
    const bool in_group = std::ranges::any_of(std::span(added.parameters).first(i), is_each);
    if (in_group || std::ranges::any_of(before, is_each))
      throw Error(Code::invalid, std::string("[") + name_ + "] parameter " + std::to_string(before.size() + i) + " is in " +
                                     (in_group ? "this" : "another") + " group already: give each parameter once");
  }
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    for (const Tensor& each : added.parameters)
      slots_[slot].tensors.push_back(has_slot(slot, added.options) ? zeros_like(each) : Tensor());
  if (captured_.is) ++observe::changes;
  groups_.push_back(std::move(added));
  resized();
}

void Optimizer::add_groups(std::vector<ParameterGroup> groups) {
  for (size_t i = 0; i < options_.size(); ++i) require_option(i, options_[i].value);
  for (ParameterGroup& each : groups) add_param_group(std::move(each));
}

double Optimizer::option(std::string_view name, size_t group) const {
  const size_t index = index_of(name);
  return groups_.empty() ? options_[index].value : groups_.at(group).options[index];
}

void Optimizer::set_option(std::string_view name, double value, size_t group) {
  const size_t option = index_of(name);
  require_option(option, value);
  std::vector<double> changed = groups_.at(group).options;
  changed[option] = value;
  check(changed);
  observe::unrepeatable("sets an option of an optimiser", "do that outside, also if a schedule does it");
  ++changes_;
  groups_[group].options = std::move(changed);
}

std::vector<std::string> Optimizer::option_names() const {
  std::vector<std::string> names;
  for (const Option& each : options_) names.emplace_back(each.name);
  return names;
}

void Optimizer::set_rate(double rate) {
  for (size_t i = 0; i < groups_.size(); ++i) set_option("lr", rate, i);
}

double Optimizer::initial_rate(size_t group) {
  std::optional<double>& rate = groups_.at(group).initial_rate;
  if (!rate) rate = option("lr", group);
  return *rate;
}

void Optimizer::check(std::span<const double>) const {}
bool Optimizer::has_slot(size_t, std::span<const double>) const { return true; }

std::vector<Tensor> Optimizer::all_parameters() const {
  std::vector<Tensor> all;
  for (const Group& group : groups_) all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  return all;
}

// --- Steps.

void Optimizer::for_each_update(const std::function<void(const Update&)>& f) {
  size_t at = 0;
  for (Group& group : groups_) {
    for (Tensor& parameter : group.parameters) {
      const Tensor grad = parameter.requires_grad() ? parameter.grad() : Tensor();
      if (grad.defined()) f({parameter, grad, group.options, at});
      ++at;
    }
  }
}

// A changed option may need a slot.
void Optimizer::prepare_slots() {
  const NoGrad unrecorded;
  for_each_update([&](const Update& each) {
    for (size_t i = 0; i < slots_.size(); ++i)
      if (has_slot(i, each.options)) slot(i, each);
  });
  prepared_ = changes_;
}

uint64_t Optimizer::advance() {
  ++steps_;
  if (prepared_ != changes_) prepare_slots();
  return (changes_ << 40) + (count(1) ? static_cast<uint64_t>(steps_) : 0);
}

void Optimizer::apply() {
  const NoGrad unrecorded;
  Updates together;
  for_each_update([&](const Update& each) { update(each, together); });
  together.run();
}

void Optimizer::take_back() {
  --steps_;
  count(-1);
}

void Optimizer::step() {
  if (!observe::is_on()) [[likely]] {
    advance();
    return apply();
  }
  captured_.is = true;
  observe::run_part({[this] { return advance(); }, [this] { apply(); }, [this] { take_back(); }});
}

bool Optimizer::count(int) { return false; }

// A module may have moved since the last step, and a changed option may need the slot.
Tensor& Optimizer::slot(size_t slot, const Update& update) {
  Tensor& tensor = slots_[slot].tensors[update.at];
  if (!tensor.defined()) tensor = zeros_like(update.parameter);
  if (tensor.device() != update.parameter.device()) {
    const observe::DoneOnce moved;
    tensor.move_to_(update.parameter.device());
  }
  if (tensor.dtype() != update.parameter.dtype()) tensor.convert_(update.parameter.dtype());
  return tensor;
}

void Optimizer::zero_grad() {
  for (Group& group : groups_)
    for (Tensor& parameter : group.parameters) parameter.clear_grad();
}

// --- State.

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> all;
  for (const Slot& slot : slots_)
    for (size_t i = 0; i < slot.tensors.size(); ++i)
      if (slot.tensors[i].defined()) all.push_back({slot.name + ("." + std::to_string(i)), slot.tensors[i]});
  return all;
}

namespace {
const Tensor& find(const std::vector<NamedTensor>& state, const NamedTensor& wanted) {
  const auto entry = std::ranges::find(state, wanted.name, &NamedTensor::name);
  if (entry == state.end() || !entry->tensor.defined())
    throw Error(Code::invalid, "[load_state] tensor " + wanted.name + " is missing");
  const Tensor& found = entry->tensor;
  if (found.shape() != wanted.tensor.shape() || found.dtype() != wanted.tensor.dtype())
    throw Error(Code::invalid, "[load_state] tensor " + wanted.name + " is " + dtype_name(found.dtype()) + " " +
                                   found.shape().text() + ", expected " + dtype_name(wanted.tensor.dtype()) + " " +
                                   wanted.tensor.shape().text());
  return found;
}
}  // namespace

void Optimizer::require_steps(const std::string& what, int64_t steps) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (steps < 0 || steps > kMost)
    throw Error(Code::invalid, "[load_state] " + what + " must lie between 0 and 2^40, got " + std::to_string(steps));
}

void Optimizer::load_state(const std::vector<NamedTensor>& given, int64_t steps) {
  require_steps("steps", steps);
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const NamedTensor& own : state()) copies.emplace_back(own.tensor, find(given, own));
  const NoGrad unrecorded;
  for (auto& [own, source] : copies) own.copy_(source);
  ++changes_;
  steps_ = steps;
}

}  // namespace plugrad::nn
