// Gradients in compiled steps: returned gradients, hooks, gradients that are kept or belong to arguments, several
// optimisers.
#include <tests/steps/twins.hpp>

#include <functional>

namespace plugrad::test {
namespace {

// Succeeds if a program returns the same tensors with eager and with compiled steps.
::testing::AssertionResult agrees(const std::function<Tensors(bool compiled)>& program) {
  return same_bytes(program(true), program(false));
}
void append(Tensors& all, const Tensors& more) { all.insert(all.end(), more.begin(), more.end()); }

TEST(CompiledGradients, MayBeResultsToo) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor w = f32({1, 2}).requires_grad_();
    Twin step(compiled, [&](const Tensor& x) {
      w.clear_grad();
      sum(w * x).backward();
      return Tensors{w.grad(), w.grad()};
    });
    Tensors all;
    for (int i = 0; i < 6; ++i) {
      append(all, step(f32({1.0 * i, 1})));
      all.push_back(w.grad());
    }
    return all;
  }));
}

TEST(CompiledGradients, OfTheStepBeforeMayBeKept) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor w = f32({1, 1}).requires_grad_(), mean_of = f32({1, 1}).requires_grad_();
    w.set_grad(f32({1, 1}));
    Twin step(compiled, [&](const Tensor& x) {
      const Tensor before = w.grad();
      mean_of.set_grad(before);
      w.clear_grad();
      sum(w * x).backward();
      return before;
    });
    Tensors all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(step(f32({1.0 * i, 2})));
      append(all, {w.grad(), mean_of.grad()});
    }
    return all;
  }));
}

TEST(CompiledGradients, ThatOthersShareAreToldApart) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor a = f32({1, 1}).requires_grad_(), b = f32({1, 1}).requires_grad_(), captured = f32({1, 2});
    a.set_grad(captured);
    b.set_grad(captured);
    Twin step(compiled, [&](const Tensor& x) { return captured * x + a.grad() * 10 + b.grad() * 100; });
    Tensors all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(step(f32({1.0 * i, 2})));
      if (i == 1) a.set_grad(f32({5, 6}));
      if (i == 2) b.set_grad(f32({7, 8}));
    }
    return all;
  }));
}

TEST(CompiledGradients, FollowHooksThatComeAndGo) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor w = f32({1, 2}).requires_grad_();
    HookHandle hook;
    Twin step(compiled, [&](const Tensor& x) { sum(w * x).backward(); });
    for (int i = 0; i < 9; ++i) {
      if (i == 3) hook = w.register_hook([](const Tensor& grad) { return grad * 3; });
      if (i == 6) hook.remove();
      step(f32({1.0 * i, 1}));
    }
    return Tensors{w.grad()};
  }));
}

TEST(CompiledGradients, GoThroughHooks) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor w = f32({1, 2}).requires_grad_(), u = f32({3, 4}).requires_grad_();
    const HookHandle scaled = w.register_hook([](const Tensor& grad) { return grad * 3; });
    const HookHandle updates = u.register_post_accumulate_grad_hook([](Tensor& leaf) {
      const NoGrad unrecorded;
      leaf.add_(leaf.grad(), -0.1);
      leaf.clear_grad();
    });
    Twin step(compiled, [&](const Tensor& x) { sum(w * u * x).backward(); });
    for (int i = 0; i < 6; ++i) step(f32({1.0 * i, 1}));
    return Tensors{w.grad(), u.detach(), u.grad()};
  }));
}

TEST(CompiledGradients, AreKeptWhereThatIsAsked) {
  EXPECT_TRUE(agrees([](bool compiled) {
    const Tensor w = f32({1, 2}).requires_grad_();
    Twin step(compiled, [&](const Tensor& x) {
      Tensor y = w * x;
      y.retain_grad();
      sum(y * y).backward();
      return y.grad();
    });
    Tensors all;
    for (int i = 0; i < 4; ++i) all.push_back(step(f32({1.0 * i, 1})));
    all.push_back(w.grad());
    return all;
  }));
}

TEST(CompiledGradients, ReachANewLeafInEachCall) {
  const Warnings warnings;
  EXPECT_TRUE(agrees([](bool compiled) {
    Twin step(compiled, [](const Tensor& x) { sum(x * x).backward(); });
    Tensors all;
    for (int i = 0; i < 12; ++i) {
      const Tensor x = f32({1.0 * i, 1}).requires_grad_();
      step(x);
      all.push_back(x.grad());
    }
    return all;
  }));
}

TEST(CompiledGradients, MayBeChangedBetweenSteps) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor w = f32({1, 2}).requires_grad_();
    Twin step(compiled, [&](const Tensor& x) { sum(w * x).backward(); });
    for (int i = 0; i < 6; ++i) {
      step(f32({1.0 * i, 1}));
      w.grad().mul_(0.5);
    }
    return Tensors{w.grad()};
  }));
}

TEST(CompiledGradients, ServeSeveralOptimizers) {
  EXPECT_TRUE(agrees([](bool compiled) {
    Tensor a = f32({1, 2, 3}).requires_grad_(), b = f32({3, 2, 1}).requires_grad_();
    nn::Adam adam({a}, 0.1);
    nn::SGD sgd({b}, 0.1, nn::SGDOptions{.momentum = 0.9});
    Twin step(compiled, [&](const Tensor& x) {
      for (int turn = 0; turn < 2; ++turn) {  // steps the same optimiser twice in a step
        adam.zero_grad();
        sgd.zero_grad();
        sum(tanh(a * x) * b).backward();
        adam.step();
      }
      sgd.step();
    });
    for (int i = 0; i < 9; ++i) {
      if (i == 4) adam.set_rate(0.01), sgd.set_option("momentum", 0.5);
      if (i == 6) adam.set_option("beta1", 0.5);
      step(f32({1.0 * i, 1, 2}));
    }
    EXPECT_EQ(adam.steps(), 18);
    return Tensors{a.detach(), b.detach(), a.grad(), b.grad()};
  }));
}

TEST(CompiledGradients, ComeFromFunctionsAndGrad) {
  struct Cube final : Function {
    std::string name() const override { return "cube"; }
    Tensors forward(const Tensors& x) override {
      save_for_backward(x);
      return {x[0] * x[0] * x[0]};
    }
    Tensors backward(const Tensors& grads) override {
      const Tensor x = saved_tensors()[0];
      return {grads[0] * x * x * 3};
    }
  };
  EXPECT_TRUE(agrees([](bool compiled) {
    const Tensor w = f32({1, 2}).requires_grad_();
    Twin step(compiled, [&](const Tensor& x) {
      const Tensor y = sum(apply_function<Cube>({w * x})[0]);
      const Tensor slope = grad({y}, {w}, {.retain_graph = true})[0];
      y.backward();
      return slope;
    });
    Tensors all;
    for (int i = 0; i < 5; ++i) all.push_back(step(f32({1.0 * i, 1})));
    all.push_back(w.grad());
    return all;
  }));
}

}  // namespace
}  // namespace plugrad::test
