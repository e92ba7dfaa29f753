#include <bridge/generator.hpp>

#include <ATen/Functions.h>
#include <bridge/devices.hpp>

#include <array>
#include <cstring>
#include <deque>

namespace plugrad_torch {
thread_local bool is_recording = false;
namespace {
constexpr uint64_t kFirstSeed = 67280421310721;  // as PyTorch's own devices

struct GeneratorImpl final : c10::GeneratorImpl {
  explicit GeneratorImpl(c10::DeviceIndex index)
      : c10::GeneratorImpl(at_index(index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  void set_current_seed(uint64_t seed) override { state = {seed, 0}; }
  uint64_t current_seed() const override { return state.seed; }
  void set_offset(uint64_t offset) override { state.offset = offset; }
  uint64_t get_offset() const override { return state.offset; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return state.seed;
  }
  void set_state(const c10::TensorImpl& bytes) override {
    TORCH_CHECK(bytes.numel() == sizeof state && bytes.dtype() == caffe2::TypeMeta::Make<uint8_t>() && bytes.is_contiguous(),
                "the state of a generator of plugrad is a tensor of ", sizeof state, " bytes");
    std::memcpy(&state, bytes.data(), sizeof state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::Tensor bytes = at::empty({sizeof state}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    std::memcpy(bytes.data_ptr(), &state, sizeof state);
    return bytes.getIntrusivePtr();
  }
  GeneratorImpl* clone_impl() const override {
    auto* copy = new GeneratorImpl(device().index());
    copy->state = state;
    return copy;
  }

  plugrad::GeneratorState state{kFirstSeed, 0};
};
}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto& all = *[] {
    auto* made = new std::deque<at::Generator>;
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) made->push_back(new_generator(i));
    return made;
  }();
  return all.at(static_cast<size_t>(index < 0 ? current_device() : index));
}
at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<GeneratorImpl>(index < 0 ? current_device() : index);
}

RandomScope::RandomScope(const std::optional<at::Generator>& generator, c10::DeviceIndex index) {
  const bool is_default = !generator || !generator->defined() || *generator == default_generator(index);
  TORCH_CHECK(!is_recording || is_default, "a recorded step draws from the device's default generator only");
  if (is_recording) return;
  const at::Generator& source = is_default ? default_generator(index) : *generator;
  TORCH_CHECK(source.device() == at_index(index), "Expected a generator of ", at_index(index), ", but found ",
              source.device());
  auto* impl = static_cast<GeneratorImpl*>(source.unsafeGetGeneratorImpl());
  lock_ = std::unique_lock(impl->mutex_);
  scope_.emplace(device_at(index), impl->state);
}

}  // namespace plugrad_torch
