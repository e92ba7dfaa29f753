// Modules and their members, apart from the values that modules compute.
#include <plugrad/plugrad.hpp>
#include <tests/core/expect.hpp>

namespace plugrad {
namespace {

using test::throws;
using Names = std::vector<std::string>;

template <class Named> Names names_of(const std::vector<Named>& all) {
  Names names;
  for (const Named& each : all) names.push_back(each.name);
  return names;
}

// A module with every kind of member.
struct Net final : nn::Module {
  nn::Linear first{2, 3};
  std::shared_ptr<nn::Module> rest =
      std::make_shared<nn::Sequential>(nn::Sequential{nn::Tanh(), nn::Dropout(0.5), nn::Linear(3, 1, false)});
  Tensor scale = ones({1}).requires_grad_(), mean = full({2}, 0.5), scratch = zeros({4}), absent;
  void members(nn::Members& all) override {
    all("scale", scale), all("absent", absent), all("first", first), all("rest", rest);
    all.buffer("mean", mean), all.buffer("scratch", scratch, false);
  }
  Tensor forward(const Tensor& x) const override { return (*rest)(first(sub(x, mean)))*scale; }
};

// Parentheses do not compile, because g++ would construct the last module first, and so draw its weights first.
static_assert(!std::is_constructible_v<nn::Sequential, nn::Linear, nn::Linear>);
TEST(Containers, DrawTheirWeightsInOrder) {
  manual_seed(3);
  const nn::Linear first(2, 3), second(3, 2);
  manual_seed(3);
  nn::Sequential both{nn::Linear(2, 3), nn::Linear(3, 2)};
  EXPECT_EQ(both.parameters()[0].to_vector<float>(), first.weight.to_vector<float>());
  EXPECT_EQ(both.parameters()[2].to_vector<float>(), second.weight.to_vector<float>());
}

TEST(Modules, NameTheirMembers) {
  const Net net;
  EXPECT_EQ(names_of(net.named_parameters()), (Names{"scale", "first.weight", "first.bias", "rest.2.weight"}));
  EXPECT_EQ(names_of(net.named_buffers()), (Names{"mean", "scratch"}));
  EXPECT_EQ(names_of(net.state_dict()), (Names{"scale", "mean", "first.weight", "first.bias", "rest.2.weight"}));
  EXPECT_EQ(names_of(net.named_children()), (Names{"first", "rest"}));
  EXPECT_EQ(names_of(net.named_modules()), (Names{"", "first", "rest", "rest.0", "rest.1", "rest.2"}));
  EXPECT_EQ(net.text(), "Net(first=Linear(2, 3), rest=Sequential(Tanh(), Dropout(p=0.5), Linear(3, 1, bias=false)))");
  EXPECT_EQ(net(ones({5, 2})).shape(), Shape({5, 1}));
}

struct Tied final : nn::Module {
  nn::Linear first{2, 2}, second{2, 2};
  Tied() { second.weight = first.weight; }
  void members(nn::Members& all) override { all("first", first), all("second", second); }
};

TEST(Modules, CountASharedParameterOnce) {
  Tied tied;
  EXPECT_EQ(tied.named_parameters().size(), 4u);
  EXPECT_EQ(tied.parameters().size(), 3u);
  tied.to(DType::f64);
  EXPECT_TRUE(tied.first.weight.is_same(tied.second.weight));
  EXPECT_EQ(tied.second.weight.dtype(), DType::f64);
  EXPECT_TRUE(throws(Code::invalid, {"Tied(", "defines no forward of one tensor"}, [&] { tied(ones({1, 2})); }));
}

TEST(Modules, TrainAndEvaluate) {
  Net net;
  manual_seed(3);
  net.eval();
  EXPECT_FALSE(net.training() || net.rest->training());
  const Tensor x = randn({8, 2});
  EXPECT_EQ(test::elements(net(x)), test::elements(net(x)));
  net.train();
  for (const nn::NamedModule& each : net.named_modules()) EXPECT_TRUE(each.module->training()) << each.name;
  int64_t seen = 0;
  net.apply([&](nn::Module& module) { seen = seen * 10 + static_cast<int64_t>(module.named_children().size()); });
  EXPECT_EQ(seen, 32);  // children first: Linear, those of Sequential, Sequential with 3, this module with 2
}

TEST(Modules, FreezeAndForgetGradients) {
  Net net;
  net.requires_grad_(false);
  EXPECT_EQ(net.parameters().size(), 4u);
  EXPECT_EQ(net.state_dict().size(), 5u);
  EXPECT_FALSE(net(ones({1, 2})).requires_grad());
  net.requires_grad_();
  sum(net(ones({1, 2}))).backward();
  for (const Tensor& each : net.parameters()) EXPECT_TRUE(each.grad().defined());
  net.zero_grad();
  for (const Tensor& each : net.parameters()) EXPECT_FALSE(each.grad().defined());
}

TEST(Modules, CopyTheirState) {
  Net net, other;
  net.mean.fill_(3);
  EXPECT_TRUE(other.load_state_dict(net.state_dict()).missing_keys.empty());
  for (size_t i = 0; i < net.state_dict().size(); ++i)
    EXPECT_EQ(test::elements(net.state_dict()[i].tensor), test::elements(other.state_dict()[i].tensor));
  std::vector<nn::NamedTensor> wrong = net.state_dict();
  wrong[0].name = "other";
  EXPECT_TRUE(throws(Code::invalid, {"missing: scale", "unexpected: other"}, [&] { other.load_state_dict(wrong); }));
  const nn::LoadResult result = other.load_state_dict(wrong, false);
  EXPECT_EQ(result.missing_keys, Names{"scale"});
  EXPECT_EQ(result.unexpected_keys, Names{"other"});
  wrong = net.state_dict();
  wrong[0].tensor = full({1}, 9);
  wrong[4].tensor = ones({7});
  EXPECT_TRUE(throws(Code::invalid, {"rest.2.weight has shape (1, 3), but the new value (7,)"},
                     [&] { other.load_state_dict(wrong); }));
  EXPECT_EQ(other.scale.item<double>(), 1);
}

TEST(Modules, ConvertTheirTensorsInPlace) {
  Net net;
  nn::SGD optimizer(net.parameters(), 0.5);
  net.first.bias.requires_grad_(false);
  net.to(DType::f64);
  for (const nn::NamedTensor& each : net.state_dict()) EXPECT_EQ(each.tensor.dtype(), DType::f64) << each.name;
  net.first.bias.requires_grad_();
  sum(net(full({3, 2}, 1, DType::f64))).backward();
  EXPECT_EQ(net.first.bias.grad().dtype(), DType::f64);
  const double before = net.scale.item<double>();
  optimizer.step();
  EXPECT_NE(net.scale.item<double>(), before);
  net.to(DType::f32);  // converts the gradients, too
  EXPECT_EQ(net.first.weight.grad().dtype(), DType::f32);
  optimizer.step();
  EXPECT_TRUE(throws(Code::invalid, {"a module cannot be i64"}, [&] { net.to(DType::i64); }));
  Tensor result = net.scale * 2;
  EXPECT_TRUE(throws(Code::invalid, {"[convert_]", "result of an op"}, [&] { result.convert_(DType::f64); }));
  EXPECT_TRUE(throws(Code::invalid, {"[convert_]", "i64 has none"}, [&] { net.scale.convert_(DType::i64); }));
}

TEST(Modules, AFrozenLeafKeepsItsGradientWhenItMoves) {
  Tensor x = full({2}, 3).requires_grad_();
  sum(x * x).backward();
  x.requires_grad_(false);
  x.convert_(DType::f64);
  EXPECT_EQ(test::elements(x.grad()), (std::vector<double>{6, 6}));
  EXPECT_EQ(x.grad().dtype(), DType::f64);
  x.requires_grad_();
  sum(x * x).backward();
  EXPECT_EQ(test::elements(x.grad()), (std::vector<double>{12, 12}));
}

TEST(Modules, CallTheirHooks) {
  Net net;
  net.eval();
  std::vector<std::string> calls;
  nn::ForwardHookHandle before = net.register_forward_pre_hook([&](const nn::Module& module, const Tensor& x) {
    calls.push_back("before " + module.text().substr(0, 3));
    return x * 2;
  });
  nn::ForwardHookHandle after = net.first.register_forward_hook([&](const nn::Module&, const Tensor&, const Tensor&) {
    calls.emplace_back("after");
    return Tensor();
  });
  const Tensor x = randn({3, 2});
  const std::vector<double> hooked = test::elements(net(x));
  EXPECT_EQ(calls, (std::vector<std::string>{"before Net", "after"}));
  EXPECT_EQ(hooked, test::elements(net.forward(x * 2)));
  before.remove();
  before.remove();
  EXPECT_EQ(test::elements(net(x)), test::elements(net.forward(x)));
  after = net.register_forward_hook([](const nn::Module&, const Tensor&, const Tensor& out) { return out + 1; });
  EXPECT_TRUE(test::close(test::elements(net(x)), test::elements(net.forward(x) + 1), 0));
}

TEST(Modules, ListsHoldWhatTheyAreGiven) {
  nn::ModuleList list{nn::Linear(2, 2), nn::ReLU()};
  list.push_back(std::make_shared<nn::Linear>(2, 1));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list.text(), "ModuleList(Linear(2, 2), ReLU(), Linear(2, 1))");
  EXPECT_EQ(names_of(list.named_parameters()), (Names{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_THROW(list[3], std::out_of_range);
  EXPECT_TRUE(throws(Code::invalid, {"defines no forward"}, [&] { list(ones({1, 2})); }));
}

TEST(Modules, RefuseSizesThatMakeNoSense) {
  EXPECT_TRUE(throws(Code::invalid, {"[conv]", "groups 2"}, [] { nn::Conv2d(3, 4, {3}, {.groups = 2}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[conv]", "(3, 3, 3)"}, [] { nn::Conv2d(3, 4, {3, 3, 3}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[embedding] padding_idx 5"}, [] { nn::Embedding(5, 2, {.padding_idx = 5}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[group_norm] 3 groups"}, [] { nn::GroupNorm(3, 4); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multihead_attention] 4 heads"}, [] { nn::MultiheadAttention(6, 4); }));
  EXPECT_TRUE(throws(Code::invalid, {"[recurrent]"}, [] { nn::LSTM(0, 4); }));
  EXPECT_TRUE(throws(Code::invalid, {"[recurrent]", "expected (1, 2, 4)"},
                     [] { nn::GRU(3, 4).run(ones({5, 2, 3}), ones({2, 4})); }));
  EXPECT_TRUE(throws(Code::invalid, {"BatchNorm2d(4)", "rank 4"}, [] { nn::BatchNorm2d(4)(ones({2, 4})); }));
}

}  // namespace
}  // namespace plugrad
