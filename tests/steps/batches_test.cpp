// Optimiser steps of many parameters run as batches, on a device that checks that the calls of a batch are independent.
#include <tests/steps/sim_device.hpp>

#include <plugrad/sdk/list.h>
#include <plugrad/ops/update.hpp>
#include <plugrad/runtime/profiler.hpp>
#include <plugrad/sdk/ops.hpp>
#include <tests/paths.hpp>

#include <dlfcn.h>

#include <functional>
#include <memory>
#include <string_view>

namespace plugrad::test {
namespace {

class Batches : public SimDevice {
 protected:
  // Returns the number of batches that the function submits.
  uint64_t batches(const std::function<void()>& f) const {
    const uint64_t before = sim->batches(handle());
    f();
    return sim->batches(handle()) - before;
  }
};

// Parameters with gradients.
Tensors parameters(DType dtype = DType::f32) {
  Tensors all;
  for (const Shape& shape : {Shape{3}, Shape{40, 30}, Shape{}, Shape{7, 1}, Shape{1000}}) {
    all.push_back(cast(rand(shape), dtype).requires_grad_());
    all.back().set_grad(cast(rand(shape), dtype));
  }
  return all;
}
Tensors values_of(const Tensors& all) {
  Tensors values;
  for (const Tensor& each : all) values.push_back(each.detach());
  return values;
}

using Make = std::function<std::unique_ptr<nn::Optimizer>(Tensors)>;
const Make kOptimizers[] = {
    [](Tensors p) { return std::make_unique<nn::SGD>(std::move(p), 0.1); },
    [](Tensors p) { return std::make_unique<nn::SGD>(std::move(p), 0.1, nn::SGDOptions{.momentum = 0.9}); },
    [](Tensors p) { return std::make_unique<nn::AdamW>(std::move(p), 0.1); },
};

TEST_F(Batches, AreOneSubmissionWithTheSameBits) {
  for (const Make& make : kOptimizers) {
    manual_seed(3);
    const Tensors all = parameters();
    manual_seed(3);
    const Tensors alone = parameters();
    const auto optimizer = make(all);
    std::vector<std::unique_ptr<nn::Optimizer>> each;  // of one parameter
    for (const Tensor& parameter : alone) each.push_back(make({parameter}));
    for (int i = 0; i < 3; ++i) {
      const uint64_t kernels = default_device().counters().kernels;
      EXPECT_EQ(batches([&] { optimizer->step(); }), 1u);
      EXPECT_EQ(default_device().counters().kernels - kernels, all.size());
      EXPECT_EQ(batches([&] {
                  for (const auto& one : each) one->step();
                }),
                0u);
    }
    EXPECT_TRUE(same_bytes(values_of(all), values_of(alone)));
  }
}

TEST_F(Batches, AreOneSubmissionForEachKernel) {
  Tensors all = parameters();
  for (const Tensor& each : parameters(DType::f64)) all.push_back(each);
  nn::Adam adam(all, 0.1);
  EXPECT_EQ(batches([&] { adam.step(); }), 2u);
}

// In the second part, one update runs at once, because its gradient is a temporary: pending updates must run before it.
TEST_F(Batches, RunAloneInTheirOrderIfTheyShareMemory) {
  Tensor x = rand({100}).requires_grad_(), same = x.detach().requires_grad_();
  x.set_grad(ones({100}));
  same.set_grad(ones({100}));
  const Tensor wanted = x.detach() - 0.5 - 0.5;
  nn::SGD sgd({x, same}, 0.5);
  EXPECT_EQ(batches([&] { sgd.step(); }), 0u);
  EXPECT_TRUE(same_bytes({x.detach()}, {wanted}));

  std::vector<float> values;
  for (const Device device : {Device("cpu"), Device("sim")}) {
    Tensor first = ones({100}, DType::f32, device).requires_grad_(), second = first.detach().requires_grad_();
    first.set_grad(ones({100}, DType::f32, device));
    second.set_grad(ones({100}, DType::f32, device));
    nn::SGD({{{first}}, {{second}, {{"weight_decay", 0.25}}}}, 0.5).step();
    values.push_back(sum(first).item<float>());
  }
  EXPECT_EQ(values[0], values[1]);
}

// With weight decay, each gradient is a temporary, which is released before the next gradient is computed.
TEST_F(Batches, HoldNoTemporaries) {
  Tensors all;
  for (int i = 0; i < 16; ++i) {
    all.push_back(ones({1 << 16}).requires_grad_());
    all.back().set_grad(ones({1 << 16}));
  }
  nn::SGD sgd(all, 0.1, {.weight_decay = 0.1});
  default_device().sync();
  default_device().reset_peak();
  const uint64_t before = default_device().memory().active;
  sgd.step();
  EXPECT_LT(default_device().memory().peak - before, 4u << 18);
}

TEST_F(Batches, RunAloneWhenTheyAreDeclined) {
  for (const uint32_t fault : {PLUGRAD_SIM_UNSUPPORTED, PLUGRAD_SIM_NO_ROOM}) {
    manual_seed(4);
    const Tensors all = parameters();
    Tensors wanted;
    for (const Tensor& each : all) wanted.push_back(each.detach() - each.grad() * 0.25);
    nn::SGD sgd(all, 0.25);
    sim->arm(handle(), fault, 1);
    EXPECT_EQ(batches([&] { sgd.step(); }), 0u);
    EXPECT_TRUE(same_bytes(values_of(all), wanted));
  }
}

TEST_F(Batches, FailAtTheOpThatFails) {
  const Tensors all = parameters();
  nn::SGD sgd(all, 0.25);
  default_device().sync();
  sim->arm(handle(), PLUGRAD_SIM_FAIL, 2);
  EXPECT_EQ(batches([&] { sgd.step(); }), 1u);
  try {
    (void)all[1].detach().to_vector<float>();
    ADD_FAILURE() << "no failure";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::device_error) << error.what();
    EXPECT_EQ(error.first(), error.last());
  }
}

TEST_F(Batches, RunAloneUnderAProfiler) {
  nn::SGD sgd(parameters(), 0.25);
  const Profiler profiler;
  EXPECT_EQ(batches([&] { sgd.step(); }), 0u);
}

// Before run() no update has been submitted.
TEST_F(Batches, WaitForRun) {
  Tensor x = ones({5}), y = ones({6}), none;
  Updates updates;
  updates.sgd_step(x, none, ones({5}), {.rate = 1});
  updates.sgd_step(y, none, ones({6}), {.rate = 1});
  EXPECT_EQ(sum(x).item<float>(), 5);
  updates.run();
  EXPECT_EQ(sum(x).item<float>() + sum(y).item<float>(), 0);
}

// Kernels that decline every call.
namespace declining {
plugrad_status run(const plugrad_kernel*, plugrad_stream*, const plugrad_op*) { return PLUGRAD_UNSUPPORTED; }
uint32_t batches(plugrad_device*, const plugrad_kernel*) { return 1; }
plugrad_status make(plugrad_stream*, const plugrad_list_call*, uint32_t, uint32_t, plugrad_list**) {
  return PLUGRAD_UNSUPPORTED;
}
plugrad_status run_list(plugrad_list*, uint64_t, const uint64_t*) { return PLUGRAD_INTERNAL; }
void drop(plugrad_list*) {}
constexpr plugrad_kernel kKernel{sizeof(plugrad_kernel), 0, run, nullptr};
constexpr plugrad_lists kLists{sizeof(plugrad_lists), 2, batches, make, run_list, drop};
const plugrad_backend* sim = nullptr;

const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* signature) {
  const OpInfo* const op = op_info(signature->opcode);
  return op && op->shape == OpShape::update ? &kKernel : sim->resolve(device, signature);
}
const void* extension(const char* name) { return std::string_view(name) == PLUGRAD_LISTS ? &kLists : nullptr; }
}  // namespace declining

TEST_F(Batches, AreComposedWhereTheirKernelsDecline) {
  void* const library = dlopen(test::test_plugin_path("libplugrad-backend-sim.so").c_str(), RTLD_NOW);
  declining::sim = reinterpret_cast<plugrad_backend_entry>(dlsym(library, "plugrad_backend_v0"))(host());
  static plugrad_backend table = *declining::sim;
  table.name = "declining";
  table.resolve = declining::resolve;
  table.get_extension = declining::extension;
  add_backend(&table);
  for (const Make& make : kOptimizers) {
    Tensors values;
    for (const Device device : {Device("sim"), Device("declining")}) {
      manual_seed(5);
      Tensors all;
      for (const Tensor& each : parameters()) {
        all.push_back(to(each.detach(), device).requires_grad_());
        all.back().set_grad(to(each.grad(), device));
      }
      make(all)->step();
      for (const Tensor& each : all) values.push_back(to(each.detach(), Device("cpu")));
    }
    const size_t half = values.size() / 2;
    for (size_t i = 0; i < half; ++i) EXPECT_TRUE(allclose(values[i], values[half + i], 1e-6, 1e-6));
  }
  EXPECT_EQ(Device("declining").counters().decompositions, 3 * parameters().size());
}

}  // namespace
}  // namespace plugrad::test
