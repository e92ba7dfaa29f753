#include <plugrad/nn/optimizer.hpp>

#include <core/runtime/observe/observer.hpp>
#include <core/runtime/observe/step_part.hpp>
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
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
  if (is_complex(x.dtype()))
    throw Error(Code::invalid, which + " is " + dtype_name(x.dtype()) +
                                   ", and optimisers step real numbers: let the parameter be the parts, of f32 or f64 with "
                                   "a last axis of 2, and compute with view_as_complex(parameter)");
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

Optimizer::Optimizer(const char* name, std::vector<Option> options, std::vector<Slot> slots, std::vector<Number> numbers)
    : name_(name), slots_(std::move(slots)), numbers_(std::move(numbers)), options_(std::move(options)) {
  const auto maximize = std::ranges::find(options_, std::string_view("maximize"), &Option::name);
  maximize_ = static_cast<size_t>(maximize - options_.begin());
}

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
  if (value >= expected.from && value < expected.below && (!expected.is_whole || value == std::floor(value))) return;
  std::ostringstream text;
  text << "[" << name_ << "] " << expected.name << " is " << value << ": expected a "
       << (expected.is_whole ? "whole" : "finite") << " number";
  constexpr double kMost = std::numeric_limits<double>::max();
  if (expected.from > -kMost) text << " of at least " << expected.from;
  if (expected.below < kMost) text << " and below " << expected.below;
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
  check(added.options, added.parameters);
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
      slots_[slot].tensors.push_back(
          has_slot(slot, added.options) ? full_like(each, slot_start(slot, added.options)).detach() : Tensor());
  for (Number& each : numbers_) each.values.resize(before.size() + added.parameters.size());
  if (captured_.is) ++observe::changes;
  groups_.push_back(std::move(added));
}

void Optimizer::add_groups(ParameterGroups given) {
  for (size_t i = 0; i < options_.size(); ++i) require_option(i, options_[i].value);
  for (ParameterGroup& each : given.groups) add_param_group(std::move(each));
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
  check(changed, groups_.at(group).parameters);
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

void Optimizer::check(std::span<const double>, const std::vector<Tensor>&) const {}
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

void Optimizer::count(const Update& update) { ++number(0, update); }

uint64_t Optimizer::advance() {
  ++steps_;
  if (prepared_ != changes_) prepare_slots();
  if (is_counted()) for_each_update([this](const Update& each) { count(each); });
  return (changes_ << 40) + (is_counted() ? static_cast<uint64_t>(steps_) : 0);
}

void Optimizer::apply() {
  const NoGrad unrecorded;
  Updates together;
  for_each_update([&](const Update& each) {
    if (maximize_ == options_.size() || each.options[maximize_] == 0) return update(each, together);
    const Tensor ascent = neg(each.grad);
    update({each.parameter, ascent, each.options, each.at}, together);
  });
  together.run();
}

void Optimizer::keep_counts(Counts& kept) const {
  kept.steps = steps_;
  kept.values.resize(numbers_.size());
  for (size_t i = 0; i < numbers_.size(); ++i) kept.values[i] = numbers_[i].values;
}

void Optimizer::restore(const Counts& kept) {
  steps_ = kept.steps;
  for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i].values = kept.values[i];
}

void Optimizer::step() {
  if (!observe::is_on()) [[likely]] {
    advance();
    return apply();
  }
  captured_.is = true;
  const auto before = std::make_shared<Counts>();
  const auto count = [this, before] {
    keep_counts(*before);
    return advance();
  };
  observe::run_part({count, [this] { apply(); }, [this, before] { restore(*before); }});
}

// A module may have moved since the last step, and a changed option may need the slot.
Tensor& Optimizer::slot(size_t slot, const Update& update) {
  Tensor& tensor = slots_[slot].tensors[update.at];
  if (!tensor.defined()) tensor = full_like(update.parameter, slot_start(slot, update.options)).detach();
  if (tensor.device() != update.parameter.device()) {
    const observe::DoneOnce moved;
    tensor.move_to_(update.parameter.device());
  }
  if (tensor.dtype() != update.parameter.dtype()) tensor.convert_(update.parameter.dtype());
  return tensor;
}

Tensor Optimizer::decayed(const Update& u, double weight_decay) {
  return weight_decay != 0 ? add(u.grad, mul(u.parameter, weight_decay)) : u.grad;
}

void Optimizer::zero_grad() {
  for (Group& group : groups_)
    for (Tensor& parameter : group.parameters) parameter.clear_grad();
}

// --- State.

// Returns tensors on the parameters' devices: the first number as i64, other numbers as f64.
std::vector<NamedTensor> Optimizer::numbers_as_tensors() const {
  const std::vector<Tensor> parameters = all_parameters();
  std::vector<NamedTensor> all;
  for (const Number& number : numbers_) {
    if (!number.name) continue;
    for (size_t i = 0; i < number.values.size(); ++i) {
      const double value = number.values[i];
      const Device device = parameters[i].device();
      all.push_back({number.name + ("." + std::to_string(i)),
                     &number == numbers_.data() ? Tensor::from(std::vector<int64_t>{static_cast<int64_t>(value)}, {}, device)
                                                : Tensor::from(std::vector<double>{value}, {}, device)});
    }
  }
  return all;
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> all;
  for (const Slot& slot : slots_)
    for (size_t i = 0; i < slot.tensors.size(); ++i)
      if (slot.tensors[i].defined()) all.push_back({slot.name + ("." + std::to_string(i)), slot.tensors[i]});
  const std::vector<NamedTensor> numbers = numbers_as_tensors();
  all.insert(all.end(), numbers.begin(), numbers.end());
  return all;
}

namespace {
const Tensor& find(const std::vector<NamedTensor>& state, const std::string& name) {
  const auto entry = std::ranges::find(state, name, &NamedTensor::name);
  if (entry == state.end() || !entry->tensor.defined())
    throw Error(Code::invalid, "[load_state] tensor " + name + " is missing");
  return entry->tensor;
}

const Tensor& find(const std::vector<NamedTensor>& state, const std::string& name, const Tensor& like) {
  const Tensor& found = find(state, name);
  if (found.shape() != like.shape() || found.dtype() != like.dtype())
    throw Error(Code::invalid, "[load_state] tensor " + name + " is " + dtype_name(found.dtype()) + " " +
                                   found.shape().text() + ", expected " + dtype_name(like.dtype()) + " " +
                                   like.shape().text());
  return found;
}

// Returns a number that a state holds as i64, f32 or f64: PyTorch's states hold f32.
double number_of(const NamedTensor& given) {
  const DType dtype = given.tensor.dtype();
  if (given.tensor.count() == 1) {
    if (dtype == DType::i64) return static_cast<double>(given.tensor.item<int64_t>());
    if (dtype == DType::f32) return static_cast<double>(given.tensor.item<float>());
    if (dtype == DType::f64) return given.tensor.item<double>();
  }
  throw Error(Code::invalid, "[load_state] tensor " + given.name + " is " + dtype_name(dtype) + " " +
                                 given.tensor.shape().text() + ", expected a single number in i64, f32 or f64");
}

// Throws for a number of steps beyond any training: counting on would overflow.
void require_steps(const std::string& what, double steps) {
  constexpr double kMost = static_cast<double>(int64_t{1} << 40);
  if (steps >= 0 && steps <= kMost) return;
  std::ostringstream text;
  text << "[load_state] " << what << " must lie between 0 and 2^40, got " << steps;
  throw Error(Code::invalid, text.str());
}
}  // namespace

std::vector<std::vector<double>> Optimizer::numbers_in(const std::vector<NamedTensor>& state) const {
  std::vector<std::vector<double>> all;
  for (const Number& number : numbers_) {
    std::vector<double> values = number.values;
    for (size_t i = 0; number.name && i < values.size(); ++i) {
      const std::string name = number.name + ("." + std::to_string(i));
      values[i] = number_of({name, find(state, name)});
      if (&number == numbers_.data()) require_steps(name, values[i]);
    }
    all.push_back(std::move(values));
  }
  return all;
}

void Optimizer::complete_state() {
  size_t at = 0;
  for (Group& group : groups_)
    for (Tensor& parameter : group.parameters) {
      for (size_t i = 0; i < slots_.size(); ++i)
        if (has_slot(i, group.options)) slot(i, {parameter, parameter, group.options, at});
      ++at;
    }
}

void Optimizer::load_state(const std::vector<NamedTensor>& given, int64_t steps) {
  require_steps("steps", static_cast<double>(steps));
  complete_state();
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const Slot& slot : slots_)
    for (size_t i = 0; i < slot.tensors.size(); ++i)
      if (const Tensor& own = slot.tensors[i]; own.defined())
        copies.emplace_back(own, find(given, slot.name + ("." + std::to_string(i)), own));
  const Counts counts{steps, numbers_in(given)};
  const NoGrad unrecorded;
  for (auto& [own, source] : copies) own.copy_(source);
  ++changes_;
  restore(counts);
  loaded();
}

}  // namespace plugrad::nn
