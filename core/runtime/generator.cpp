#include <core/runtime/generator.hpp>

#include <core/runtime/observe/observer.hpp>
#include <plugrad/runtime/error.hpp>

#include <atomic>

namespace plugrad {

struct GeneratorScope::Inner {
  DeviceState* device;
  Generator generator;
  GeneratorState* state;  // of the caller
  Inner* outer;
  std::atomic<bool> ended{false};
};

Generator& generator_in_scope(DeviceState& device) {
  for (auto* each = static_cast<GeneratorScope::Inner*>(local().scope); each; each = each->outer)
    if (each->device == &device && !each->ended) return each->generator;
  return device.generator;
}

namespace {
DeviceState& demanded(Device device) {
  if (device.defined()) return device.state();
  throw Error(Code::invalid,
              "[generator] the device is undefined: name one, as in Device(\"cpu\"), or use default_device()");
}
}  // namespace

GeneratorScope::GeneratorScope(Device device, GeneratorState& state) {
  DeviceState& on = demanded(device);
  observe::unrepeatable("changes the generator", "do that outside");
  Local& l = local();
  inner_.reset(new Inner{&on, {state.seed, state.offset}, &state, static_cast<Inner*>(l.scope)});
  l.scope = inner_.get();
}

// Scopes may end in any order. The list of another thread keeps a scope that ended elsewhere.
GeneratorScope::~GeneratorScope() {
  *inner_->state = {inner_->generator.seed, inner_->generator.offset};
  Inner* const innermost = static_cast<Inner*>(local().scope);
  if (innermost == inner_.get()) {
    local().scope = inner_->outer;
    return;
  }
  for (Inner* each = innermost; each; each = each->outer)
    if (each->outer == inner_.get()) {
      each->outer = inner_->outer;
      return;
    }
  inner_.release()->ended = true;
}

GeneratorState generator_state(Device device) {
  const Generator& its = generator_of(demanded(device));
  return {its.seed, its.offset};
}
void set_generator_state(Device device, GeneratorState state) {
  Generator& its = generator_of(demanded(device));
  observe::unrepeatable("sets the state of a generator", "do that outside");
  its.seed = state.seed;
  its.offset = state.offset;
}

}  // namespace plugrad
