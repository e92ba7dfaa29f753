#include <core/runtime/generator.hpp>

#include <core/runtime/observe/observer.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad {

struct GeneratorScope::Inner {
  DeviceState* device;
  Generator generator;
  GeneratorState* state;  // of the caller
  GeneratorScope* outer;
};

Generator& generator_in_scope(DeviceState& device) {
  for (const auto* each = static_cast<GeneratorScope*>(local().scope); each; each = each->inner_->outer)
    if (each->inner_->device == &device) return each->inner_->generator;
  return device.generator;
}

GeneratorScope::GeneratorScope(Device device, GeneratorState& state) {
  if (!device.defined()) throw Error(Code::invalid, "[GeneratorScope] the device is undefined: name one");
  observe::unrepeatable("changes the generator", "do that outside");
  Local& l = local();
  inner_.reset(new Inner{&device.state(), {state.seed, state.offset}, &state, static_cast<GeneratorScope*>(l.scope)});
  l.scope = this;
}

GeneratorScope::~GeneratorScope() {
  *inner_->state = {inner_->generator.seed, inner_->generator.offset};
  local().scope = inner_->outer;
}

GeneratorState generator_state(Device device) {
  const Generator& its = generator_of(device.state());
  return {its.seed, its.offset};
}
void set_generator_state(Device device, GeneratorState state) {
  observe::unrepeatable("sets the state of a generator", "do that outside");
  Generator& its = generator_of(device.state());
  its.seed = state.seed;
  its.offset = state.offset;
}

}  // namespace plugrad
