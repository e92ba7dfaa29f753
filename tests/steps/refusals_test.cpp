// Steps that a replay does not support: they are refused, or the function runs instead.
#include <tests/steps/twins.hpp>

#include <stdexcept>

namespace plugrad::test {
namespace {

TEST(Compile, RefusesToReadElements) {
  const Tensor x = f32({1});
  auto reads = compile([](const Tensor& v) { return v.item<float>() < 2 ? v + 1 : v * 0; });
  auto copies = compile([](const Tensor& v) { return v + f32({1}); });
  auto seeds = compile([](const Tensor& v) { return manual_seed(1), v + rand({1}); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(throws(Code::invalid, {"[compile]", "item", "return the tensor"}, [&] { reads(x); }));
    EXPECT_TRUE(throws(Code::invalid, {"[compile]", "data of the host", "argument"}, [&] { copies(x); }));
    EXPECT_TRUE(throws(Code::invalid, {"[compile]", "manual_seed"}, [&] { seeds(x); }));
  }
  EXPECT_TRUE(close(elements(x + 1), {2}, 0)) << "eager ops go on";
}

TEST(Compile, RefusesToChangeOptions) {
  Tensor w = ones({2}).requires_grad_();
  nn::SGD optimizer({w}, 0.1);
  auto step = compile([&] { optimizer.set_rate(0.2); });
  EXPECT_TRUE(throws(Code::invalid, {"[compile]", "option", "outside"}, [&] { step(); }));
  EXPECT_EQ(optimizer.rate(), 0.1);
}

TEST(Compile, CallsAFunctionThatKeepsTensors) {
  const Warnings warnings;
  Tensor state = f32({1});
  int calls = 0;
  auto step = compile(
      [&](const Tensor& x) {
        ++calls;
        state = state * 2 + x;
        return state + 1;
      },
      {.name = "memory"});
  for (int i = 0; i < 8; ++i) step(f32({1}));
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(state.item<float>(), 511);
  ASSERT_EQ(warnings.lines.size(), 1u);
  const std::string wanted = "'memory' runs op by op: it keeps a tensor of (1,) f32";
  EXPECT_NE(warnings.lines[0].find(wanted), std::string::npos) << warnings.lines[0];
  EXPECT_NE(step.explain().find("it keeps"), std::string::npos);
}

TEST(Compile, MayBeAskedByTheSinkOfItsWarning) {
  Tensor kept;
  auto step = compile([&](const Tensor& x) { return kept = x * 2, x + 1; });
  std::string explained;
  set_log_sink([&](LogLevel, std::string_view) { explained = step.explain(); });
  for (int i = 0; i < 6; ++i) step(one(i));
  set_log_sink({});
  EXPECT_NE(explained.find("it keeps"), std::string::npos) << explained;
}

TEST(Compile, CallsAFunctionThatKeepsAnArgument) {
  const Warnings warnings;
  Tensor last;
  int calls = 0;
  auto step = compile([&](const Tensor& x) {
    ++calls;
    last = x;
    return x + 1;
  });
  for (int i = 0; i < 6; ++i) {
    step(one(i));
    EXPECT_EQ(last.item<float>(), i);
  }
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(warnings.lines.size(), 1u);
}

TEST(Compile, CallsAFunctionThatKeepsAResult) {
  const Warnings warnings;
  Tensors kept;
  auto step = compile([&](const Tensor& x) {
    const Tensor made = x + 1;
    kept.push_back(made.detach());
    return made;
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor returned = step(f32({1.0 * i}));
    ASSERT_EQ(kept.size(), static_cast<size_t>(i) + 1);
    EXPECT_TRUE(same_bytes({returned}, {kept.back()}));
  }
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("which add made, and returns it"), std::string::npos) << warnings.lines[0];
}

TEST(Compile, SaysThatItRecordsTooOften) {
  const Warnings warnings;
  Tensor w = ones({2});
  auto step = compile([&](const Tensor& x) { return x * w; });
  for (int i = 0; i < 40; ++i) {
    w.requires_grad_(i % 2 == 0);
    step(ones({2}));
  }
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("something changes that no recording outlives"), std::string::npos) << warnings.lines[0];
}

TEST(Compile, RefusesAGradScaler) {
  const nn::GradScaler scaler;
  auto step = compile([&](const Tensor& x) { return scaler.scale(x); });
  EXPECT_TRUE(throws(Code::invalid, {"[compile]", "GradScaler", "forward pass"}, [&] { step(one(1)); }));
}

TEST(Compile, RecordsEachKindOfArguments) {
  int calls = 0;
  auto step = compile([&](const Tensor& x) { return ++calls, x + 1; });
  for (int round = 0; round < 3; ++round)
    for (int64_t n = 1; n <= 50; ++n) EXPECT_TRUE(same_bytes({step(counting({n}))}, {counting({n}) + 1}));
  EXPECT_EQ(calls, 50);
  EXPECT_EQ(step.figures().replayed, 100u);
}

TEST(Compile, ReplacesTheRecordingThatWasNotUsedForLongest) {
  const Warnings warnings;
  std::vector<int64_t> recorded;
  auto step = compile([&](const Tensor& x) { return recorded.push_back(x.size(0)), x + 1; }, {.entries = 2});
  for (const int64_t n : {1, 2, 1, 3, 1, 2, 1}) EXPECT_TRUE(same_bytes({step(counting({n}))}, {counting({n}) + 1}));
  EXPECT_EQ(recorded, (std::vector<int64_t>{1, 2, 3, 2}));
  EXPECT_TRUE(warnings.lines.empty());
  step.clear();
  step(counting({3}));
  step(counting({3}));
  EXPECT_EQ(step.figures().replayed, 3 + 1u);
}

// As with a number that changes in each call.
TEST(Compile, WarnsOfKindsThatNeverComeAgain) {
  const Warnings warnings;
  auto step = compile([&](const Tensor& x) { return x + 1; });
  for (int64_t n = 1; n <= 1000; ++n) EXPECT_TRUE(same_bytes({step(counting({n}))}, {counting({n}) + 1}));
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("of its recordings have never been replayed"), std::string::npos) << warnings.lines[0];
  EXPECT_LT(step.figures().recorded, 100u);
}

// 200 kinds in turn are all recorded in the end, without a warning.
TEST(Compile, RecordsManyKindsThatComeAgain) {
  const Warnings warnings;
  auto step = compile([&](const Tensor& x) { return x + 1; });
  for (int round = 0; round < 8; ++round)
    for (int64_t n = 1; n <= 200; ++n) step(counting({n}));
  const size_t before = step.figures().replayed;
  for (int64_t n = 1; n <= 200; ++n) step(counting({n}));
  EXPECT_EQ(step.figures().replayed, before + 200);
  EXPECT_TRUE(warnings.lines.empty());
}

// Three kinds in turn, and memory for two, or for one.
TEST(Compile, WarnsOfRecordingsThatDoNotPay) {
  for (const CompileOptions& options : {CompileOptions{.entries = 2}, CompileOptions{.memory = 1}}) {
    const Warnings warnings;
    auto step = compile([&](const Tensor& x) { return x + 1; }, options);
    for (int64_t i = 0; i < 300; ++i) EXPECT_TRUE(same_bytes({step(counting({i % 3 + 1}))}, {counting({i % 3 + 1}) + 1}));
    ASSERT_EQ(warnings.lines.size(), 1u);
    EXPECT_NE(warnings.lines[0].find("16 recordings in a row, of which it keeps " + std::to_string(options.entries ? 2 : 1)),
              std::string::npos);
    EXPECT_NE(warnings.lines[0].find(options.entries ? "raise the option entries" : "raise the option memory"),
              std::string::npos);
    EXPECT_LT(step.figures().recorded, 150u);  // a recording takes longer than a call
  }
}

TEST(Compile, ForgetsARecordingThatFails) {
  bool fail = true;
  auto step = compile([&](const Tensor& x) {
    const Tensor y = x * 2;
    if (fail) throw std::runtime_error("on purpose");
    return y + 1;
  });
  EXPECT_THROW(step(f32({1})), std::runtime_error);
  fail = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(one(i)).item<float>(), 2 * i + 1);
  EXPECT_EQ(step.figures().replayed, 2u);
}

TEST(Compile, ReportsBadIndicesInReplays) {
  auto step = compile([](const Tensor& x, const Tensor& index) { return gather(x, 0, index); });
  const Tensor x = counting({4});
  EXPECT_TRUE(same_bytes({step(x, i64({3, 1}))}, {gather(x, 0, i64({3, 1}))}));
  EXPECT_TRUE(thrown([&] { elements(step(x, i64({1, 4}))); }).any);
}

}  // namespace
}  // namespace plugrad::test
