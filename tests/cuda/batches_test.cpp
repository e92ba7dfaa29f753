// The number of kernels that the steps of optimisers launch on the emulated GPU.
#include <plugrad/backends/cuda.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/plugrad.hpp>
#include <plugrad/tensor/dlpack.hpp>
#include <simt/control.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

namespace plugrad::test {
namespace {

uint64_t launches(const std::function<void()>& f) {
  default_device().sync();
  const uint64_t before = simt::launches();
  f();
  default_device().sync();
  return simt::launches() - before;
}

std::vector<Tensor> parameters(int count) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(rand({1 + i % 7, 3}).requires_grad_());
    all.back().set_grad(rand({1 + i % 7, 3}));
  }
  return all;
}

class OneLaunch : public ::testing::Test {
 protected:
  explicit OneLaunch(const char* options = "") {
    setenv("PLUGRAD_CUDA_EMU_OPTIONS", options, 1);
    add_backend(plugrad_cuda_backend(host()));
    set_default_device(Device("cuda-emu"));
  }
};
class OneNode : public OneLaunch {  // of a graph
 protected:
  OneNode() : OneLaunch("graphs=1") {}
};

TEST_F(OneLaunch, UpdatesManyParameters) {
  nn::Adam few(parameters(96), 0.1), many(parameters(97), 0.1);
  EXPECT_EQ(launches([&] { few.step(); }), 1u);
  EXPECT_EQ(launches([&] { many.step(); }), 2u);
}

// Each group of parameters has its own rate.
TEST_F(OneLaunch, IsForParametersOfOneGroup) {
  nn::SGD sgd({{parameters(5)}, {parameters(5), {{"lr", 0.5}}}, {parameters(5), {{"momentum", 0.9}}}}, 0.1);
  EXPECT_EQ(launches([&] { sgd.step(); }), 3u);
}

// If the second of two launches fails, the host must not repeat the first launch.
TEST_F(OneLaunch, IsNotRepeatedIfAnotherOneFails) {
  constexpr int kMemory = 2;  // cudaErrorMemoryAllocation
  int failures = 0;
  for (uint64_t at = 1; at < 8; ++at) {
    Tensor x = ones({40}).requires_grad_(), unaligned = narrow(ones({41}), 0, 1, 40).detach().requires_grad_();
    for (Tensor* each : {&x, &unaligned}) each->set_grad(ones({40}));
    nn::SGD sgd({x, unaligned}, 0.25);
    default_device().sync();
    simt::inject_error(kMemory, at);
    try {
      sgd.step();
      simt::inject_error(0, 0);
      EXPECT_EQ(x.to_vector<float>()[0], 0.75);
      EXPECT_EQ(unaligned.to_vector<float>()[0], 0.75);
    } catch (const Error& error) {
      simt::inject_error(0, 0);
      ++failures;
      EXPECT_EQ(error.code(), Code::internal) << error.what();
    }
    EXPECT_NE(x.to_vector<float>()[0], 0.5) << "it was updated twice";
  }
  EXPECT_GT(failures, 0);
}

// A tensor that shares the memory of x.
Tensor imported(const Tensor& x) {
  return dlpack::import_versioned(dlpack::export_versioned(x), Device("cuda-emu"), dlpack::Order::host());
}

// Two imports of one array: the product reads the array before the update changes it.
TEST_F(OneLaunch, DoesNotMoveBeforeAReader) {
  const NoGrad unrecorded;
  const Tensor array = zeros({8, 8}), grad = ones({8, 8}), w = ones({8, 8});
  Tensor before = ones({8, 8}), after = imported(array), alias = imported(array), none;
  auto step = compile([&](const Tensor& x) {
    sgd_step(before, none, grad, {.rate = 1});
    const Tensor y = matmul(alias, x);
    sgd_step(after, none, grad, {.rate = 1});
    return y;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(w).to_vector<float>()[0], -8 * i);
}

auto neg_beside(nn::AdamW& adam) {
  return compile([&adam](const Tensor& x) {
    const Tensor y = neg(x);
    adam.step();
    return y;
  });
}

TEST_F(OneLaunch, IsEnoughInACompiledStep) {
  nn::AdamW adam(parameters(9), 0.1);
  auto step = neg_beside(adam);
  const Tensor x = rand({4});
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_EQ(launches([&] { step(x); }), 2u) << step.explain();
  EXPECT_NE(step.explain().find("9 calls of adam_step run as one batch"), std::string::npos) << step.explain();
}

// Two more launches store the number from which failure reports count.
TEST_F(OneNode, IsEnoughInAGraph) {
  nn::AdamW adam(parameters(9), 0.1);
  auto step = neg_beside(adam);
  const Tensor x = rand({4});
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_NE(step.explain().find("run as one list"), std::string::npos) << step.explain();
  EXPECT_EQ(launches([&] { step(x); }), 4u) << step.explain();
}

// A batch of matrices that are not evenly spaced: a kernel writes their addresses, and the graph replays it.
TEST_F(OneNode, HasProductsOfHeadsInsideARow) {
  const NoGrad unrecorded;
  const auto heads = [](const Tensor& x) { return transpose(reshape(x, {16, 5, 4, 3}), 1, 2); };  // (16, 4, 5, 3)
  auto scores = compile([&](const Tensor& q, const Tensor& k) { return neg(matmul(heads(q), transpose(heads(k)))); });
  for (int i = 0; i < 4; ++i) {
    const Tensor q = rand({16, 5, 12}), k = rand({16, 5, 12});
    const Tensor expected = neg(matmul(contiguous(heads(q)), contiguous(transpose(heads(k)))));
    EXPECT_EQ(scores(q, k).to_vector<float>(), expected.to_vector<float>()) << "call " << i;
  }
  EXPECT_NE(scores.explain().find("run as one list"), std::string::npos) << scores.explain();
  const Tensor q = rand({16, 5, 12}), k = rand({16, 5, 12});
  EXPECT_EQ(launches([&] { scores(q, k); }), 4u) << scores.explain();  // pointers, neg, and the two for failure reports
}

TEST_F(OneNode, IsNotForUpdatesOfTheSameMemory) {
  const NoGrad unrecorded;
  const Tensor all = ones({40});
  Tensor first = imported(narrow(all, 0, 0, 30)), second = imported(narrow(all, 0, 20, 20)), none;
  const Tensor grad = ones({30}), other = ones({20}), in = ones({7});
  auto step = compile([&](const Tensor& x) {
    sgd_step(first, none, grad, {.rate = 1});
    sgd_step(second, none, other, {.rate = 1});
    return neg(x);
  });
  for (int i = 0; i < 3; ++i) step(in);
  EXPECT_NE(step.explain().find("run as one list"), std::string::npos) << step.explain();
  EXPECT_EQ(launches([&] { step(in); }), 5u) << step.explain();  // two updates, neg, and the two for failure reports
  const std::vector<float> values = all.to_vector<float>();
  EXPECT_EQ(values[25], -7);
  EXPECT_EQ(values[35], -3);
}

}  // namespace
}  // namespace plugrad::test
