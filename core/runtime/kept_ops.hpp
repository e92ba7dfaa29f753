// Ops that a device may take in one submission (plugrad/sdk/together.h).
#pragma once
#include <core/runtime/dispatch.hpp>
#include <plugrad/sdk/together.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plugrad {

// Returns what the plugin offers for the device, or null. Throws Error (internal) if it is incomplete.
const plugrad_together* together_of(const DeviceState& device);

// Several ops of one kernel.
struct OpsOfKernel {
  const plugrad_together& offered;
  const plugrad_kernel* kernel;
  std::span<plugrad_op* const> ops;           // submit_together sets their numbers
  std::span<Storage* const* const> storages;  // of the operands of each
};
// Submits the ops as one. Returns false if they have to be submitted one by one, as ops must of which one writes what
// another one uses. Throws Error if the stream failed.
bool submit_together(DeviceState& device, const OpsOfKernel& all);

// Keeps ops for one submission.
class KeptOps {
 public:
  // Keeps the op, with its storages, until run(). Returns false if the op has to run at once: the device does not take
  // several of it, or something records or observes ops.
  template <size_t kOutputs, size_t kInputs>
  bool add(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs], Attributes attributes) {
    static_assert(kOutputs + kInputs <= kMost);
    if (!outputs[0].storage()->device->compute) return false;
    const auto views = views_of(outputs, inputs);
    const auto storages = storages_of(outputs, inputs);
    return keep({static_cast<uint32_t>(op), kOutputs, kInputs, views.data(), storages.data(), attributes.block});
  }
  // Whether a kept op uses memory of the storage.
  bool use(const Storage& storage) const;
  // Runs the ops and keeps none. Returns which of them, counted from the first one added, the device cannot run. Throws
  // Error if one fails.
  std::vector<size_t> run();

 private:
  static constexpr size_t kMost = 7, kAttributeWords = 5;
  struct Kept {
    DeviceState* device;
    const plugrad_kernel* kernel;
    plugrad_op op;
    uint16_t layout;
    std::array<plugrad_view, kMost> views;
    std::array<const plugrad_view*, kMost> pointers;
    std::array<Storage*, kMost> storages;
    std::array<Ref<Storage>, kMost> held;
    std::array<uint64_t, kAttributeWords> attributes;
  };
  bool keep(const OpCall& call);
  bool takes(DeviceState& device, const plugrad_kernel* kernel);
  static bool run_together(std::span<Kept* const> all);
  static bool run_alone(Kept& kept);

  std::vector<Kept> all_;
  // The last answer of takes().
  const plugrad_kernel* kernel_ = nullptr;
  bool is_taken_ = false;
};

}  // namespace plugrad
