// Ops that wait for more ops of their kernel, so that a device takes them as a batch (plugrad/sdk/list.h).
#pragma once
#include <core/runtime/dispatch/call_list.hpp>
#include <core/runtime/dispatch/dispatch.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plugrad {

class PendingOps {
 public:
  // Keeps the op, with its storages, until run(). Returns false if the op has to run at once: the device takes no batches of
  // it, or something records or observes ops.
  template <size_t kOutputs, size_t kInputs>
  bool add(Op op, const Operand (&outputs)[kOutputs], const Operand (&inputs)[kInputs], Attributes attributes) {
    static_assert(kOutputs + kInputs <= kMost);
    if (!outputs[0].storage()->device->compute) return false;
    const auto views = views_of(outputs, inputs);
    const auto storages = storages_of(outputs, inputs);
    return keep({static_cast<uint32_t>(op), kOutputs, kInputs, views.data(), storages.data(), attributes.block});
  }
  // Whether a pending op uses memory of the storage.
  bool use(const Storage& storage) const;
  // Runs all pending ops. Returns the numbers of ops that the device cannot run, counted from 0 in the order of their
  // addition. Throws Error if an op fails.
  std::vector<size_t> run();

 private:
  static constexpr size_t kMost = 7, kAttributeWords = 5;
  struct Pending {
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
  static bool run_as_batch(std::span<Pending* const> all);
  static bool run_alone(Pending& pending);

  std::vector<Pending> all_;
  // The last answer of takes().
  const plugrad_kernel* kernel_ = nullptr;
  bool is_taken_ = false;
};

}  // namespace plugrad
