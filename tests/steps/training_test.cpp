// Compiled training steps give the same bits as eager training steps.
#include <tests/steps/twins.hpp>

#include <memory>

namespace plugrad::test {
namespace {

using Optimizers = std::function<std::unique_ptr<nn::Optimizer>(const Tensors&)>;

// Returns the losses and the final parameters of a training that changes the learning rate between steps.

Tensors train(bool compiled, const Optimizers& make, size_t* replayed = nullptr) {
  Net net(1);
  const auto optimizer = make(net.parameters);
  Twin step(compiled, [&](const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer->step();
    return loss;
  });
  Tensors all;
  const Tensor y = labels(12);
  for (uint64_t i = 0; i < 12; ++i) {
    if (i == 6) optimizer->set_rate(0.05);
    all.push_back(step(points(12, i), y).detach());
  }
  EXPECT_EQ(optimizer->steps(), 12);
  for (const nn::NamedTensor& each : optimizer->state()) all.push_back(each.tensor);
  for (const Tensor& each : net.parameters) all.insert(all.end(), {each.detach(), each.grad()});
  if (replayed) *replayed = step.step().figures().replayed;
  return all;
}

TEST(Compile, TrainsWithTheSameBits) {
  const std::vector<Optimizers> optimizers = {
      [](const Tensors& p) { return std::make_unique<nn::SGD>(p, 0.1); },
      [](const Tensors& p) { return std::make_unique<nn::SGD>(p, 0.1, nn::SGDOptions{.momentum = 0.9, .nesterov = true}); },
      [](const Tensors& p) { return std::make_unique<nn::Adam>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::AdamW>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::RMSprop>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::Lion>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::NAdam>(p, 0.01, nn::NAdamOptions{.maximize = true}); },
      [](const Tensors& p) { return std::make_unique<nn::RAdam>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::Adamax>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::Adagrad>(p, 0.01, nn::AdagradOptions{.lr_decay = 0.5}); },
      [](const Tensors& p) { return std::make_unique<nn::Adadelta>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::Rprop>(p, 0.01); },
      [](const Tensors& p) { return std::make_unique<nn::ASGD>(p, 0.01, nn::ASGDOptions{.lambda = 0.5, .t0 = 4}); },
      [](const Tensors& p) { return std::make_unique<nn::SGD>(p, 0.1, nn::SGDOptions{.momentum = 0.9, .dampening = 0.5}); }};
  for (size_t i = 0; i < optimizers.size(); ++i) {
    size_t replayed = 0;
    EXPECT_TRUE(same_bytes(train(true, optimizers[i], &replayed), train(false, optimizers[i]))) << "optimiser " << i;
    EXPECT_GE(replayed, 8u) << "optimiser " << i;
  }
}

TEST(Compile, CallsTheFunctionOnce) {
  int calls = 0;
  auto step = compile([&](const Tensor& x) { return ++calls, tanh(x * 2); });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(same_bytes({step(f32({1, 1.0 * i}))}, {tanh(f32({1, 1.0 * i}) * 2)}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(step.figures().recorded, 1u);
  EXPECT_EQ(step.figures().replayed, 4u);
}

TEST(Compile, ReturnsWhatTheFunctionReturns) {
  const Tensor x = f32({1, 2});
  for (int i = 0; i < 2; ++i) {
    auto nothing = compile([](const Tensor& a) { static_cast<void>(a + 1); });
    nothing(x);
    const auto [a, b] = compile([](const Tensor& v) { return std::pair(v + 1, v * 3); })(x);
    EXPECT_TRUE(same_bytes({a, b}, {x + 1, x * 3}));
    EXPECT_EQ(compile([](const Tensor& v) { return Tensors{v + 1, Tensor(), v}; })(x).size(), 3u);
  }
  auto none = compile([] { return ones({2}) + 1; });
  EXPECT_TRUE(same_bytes({none(), none()}, {f32({2, 2}), f32({2, 2})}));
}

TEST(Compile, AccumulatesGradients) {
  const auto run = [](bool compiled, bool clear, bool outside) {
    Tensor w = ones({3}).requires_grad_();
    Twin step(compiled, [&](const Tensor& x) {
      if (clear) w.clear_grad();
      sum(w * x).backward();
    });
    Tensors all;
    for (int i = 0; i < 6; ++i) {
      if (outside && i % 3 == 2) w.clear_grad();
      if (outside && i == 4) w.set_grad(f32({9, 9, 9}));
      step(f32({1.0 * i, 1, 2}));
      all.push_back(w.grad());  // held, so that the next gradient needs other memory
    }
    return all;
  };
  for (const bool clear : {false, true})
    for (const bool outside : {false, true})
      EXPECT_TRUE(same_bytes(run(true, clear, outside), run(false, clear, outside))) << clear << outside;
}

TEST(Compile, StepsWithGradientsFromOutside) {
  const auto run = [](bool compiled) {
    Net net(2);
    nn::Adam optimizer(net.parameters, 0.1);
    Twin step(compiled, [&] { clip_grad_norm_(net.parameters, 0.01), optimizer.step(); });
    for (uint64_t i = 0; i < 5; ++i) {
      optimizer.zero_grad();
      cross_entropy(net(points(6, i)), labels(6)).backward();
      if (i % 2) net.parameters[1].clear_grad();
      step();
    }
    Tensors all;
    for (const Tensor& each : net.parameters) all.insert(all.end(), {each.detach(), each.grad()});
    return all;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST(Compile, SharesAnOptimizerBetweenRecordings) {
  const auto run = [](bool compiled) {
    Net net(3);
    nn::SGD optimizer(net.parameters, 0.1);
    Twin step(compiled, training_step(net, optimizer));
    for (uint64_t i = 0; i < 12; ++i) {
      if (i == 8) optimizer.set_rate(0.01);
      const int64_t n = i % 2 ? 6 : 9;
      step(points(n, i), labels(n));
    }
    return net.parameters;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST(Compile, LoadsTheStateOfAnOptimizer) {
  const auto run = [](bool compiled) {
    Net net(3);
    nn::Adam optimizer(net.parameters, 0.1);
    Twin step(compiled, training_step(net, optimizer));
    std::vector<nn::NamedTensor> saved;
    for (uint64_t i = 0; i < 9; ++i) {
      if (i == 2)
        for (const nn::NamedTensor& each : optimizer.state()) saved.push_back({each.name, clone(each.tensor)});
      if (i == 6) optimizer.load_state(saved, 2);
      step(points(6, i), labels(6));
    }
    return net.parameters;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST(Compile, FollowsFrozenParameters) {
  const auto run = [](bool compiled) {
    Net net(4);
    nn::SGD optimizer(net.parameters, 0.1);
    Twin step(compiled, training_step(net, optimizer));
    for (uint64_t i = 0; i < 9; ++i) {
      if (i == 4) net.parameters[0].requires_grad_(false);
      if (i == 7) net.parameters[0].requires_grad_();
      step(points(6, i), labels(6));
    }
    return net.parameters;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST(Compile, NormalisesBatches) {
  const auto run = [](bool compiled) {
    nn::BatchNorm1d norm(4);
    Twin step(compiled, [&](const Tensor& x) { return norm(x).detach(); });
    manual_seed(1);
    Tensors all;
    for (int i = 0; i < 4; ++i) all.push_back(step(rand({8, 4})));
    for (const nn::NamedTensor& each : norm.state_dict()) all.push_back(each.tensor.detach());
    return all;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST(Compile, DifferentiatesTwice) {
  const auto run = [](bool compiled) {
    const Tensor w = f32({0.5, 2}).requires_grad_();
    Twin step(compiled, [&](const Tensor& x) {
      const Tensor in = x.detach().requires_grad_();
      const Tensor slope = grad({sum(tanh(in * w))}, {in}, {.create_graph = true})[0];
      sum(slope * slope).backward();
      return slope.detach();
    });
    Tensors all;
    for (int i = 0; i < 4; ++i) all.push_back(step(f32({1.0 * i, 1})));
    all.push_back(w.grad());
    return all;
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

}  // namespace
}  // namespace plugrad::test
