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

// Several ops of a kernel as one submission to the device's stream.
struct OpsTogether {
  const plugrad_together& offered;
  const plugrad_kernel* kernel;
  std::span<plugrad_op* const> ops;          // their numbers are set
  std::span<Storage* const* const> storages;  // of the operands of each
};
// Returns false if the ops have to be submitted one by one; so it does for ops of which one writes what another one uses.
// Throws Error if the stream failed.
bool submit_together(DeviceState& device, const OpsTogether& all);

// Independent ops, which run() submits: ops of one kernel together, where the device takes them so.
class Together {
 public:
  // Keeps the op, with its storages, until run(). Returns false if it has to run now, alone: the device takes no several
  // of it, or something records or observes ops.
  template <size_t kOutputs, size_t kInputs>
  bool add(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs], Attributes attributes) {
    static_assert(kOutputs + kInputs <= kMost);
    if (!outputs[0].storage()->device->compute) return false;
    const auto views = views_of(outputs, inputs);
    const auto storages = storages_of(outputs, inputs);
    return keep({static_cast<uint32_t>(op), kOutputs, kInputs, views.data(), storages.data(), attributes.block});
  }
  // Throws Error if one of the ops fails.
  void run();

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
  void run_kernel(std::span<Kept* const> all);

  std::vector<Kept> kept_;
  // The last answer of takes().
  const plugrad_kernel* kernel_ = nullptr;
  bool is_taken_ = false;
};

}  // namespace plugrad
