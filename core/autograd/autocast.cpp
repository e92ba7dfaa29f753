#include <core/autograd/autocast.hpp>

#include <core/runtime/device_state.hpp>

namespace plugrad {

Autocast::Autocast(AutocastOptions options) : outer_(local().autocast), before_(local().mode) {
  if (options.enabled && options.dtype != DType::bf16 && options.dtype != DType::f16)
    throw Error(Code::invalid,
                std::string("[autocast] the dtype is ") + dtype_name(options.dtype) + ": expected bf16 or f16");
  const auto* outer = static_cast<State*>(outer_);
  state_.reset(new State{std::move(options), outer ? outer->cache : std::make_shared<State::Cache>()});
  local().autocast = state_.get();
  local().mode = state_->options.enabled ? before_ | kAutocasting : before_ & ~uint32_t(kAutocasting);
}

Autocast::~Autocast() {
  local().autocast = outer_;
  local().mode = (local().mode & ~uint32_t(kAutocasting)) | (before_ & kAutocasting);
}

bool Autocast::State::covers(const Tensor& x) const {
  const std::string& name = device_of(x).name;
  return options.device.empty() || name.compare(0, name.find(':'), options.device) == 0;
}

AutocastOptions autocast_options() {
  AutocastOptions options;
  if (local().autocast) options = autocast_state().options;
  options.enabled = autocasting();
  return options;
}

bool autocast_enabled() { return autocasting(); }
DType autocast_dtype() { return local().autocast ? autocast_state().options.dtype : DType::bf16; }

}  // namespace plugrad
