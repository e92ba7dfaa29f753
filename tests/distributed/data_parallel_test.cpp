// Gradients that are the mean over ranks, against gradients that a rank computes alone.
#include <tests/distributed/ranks.hpp>
#include <tests/error_message.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace plugrad::test {
namespace {
namespace pd = plugrad::distributed;

int rank() { return pd::get_rank(); }
int size() { return pd::get_world_size(); }

// A network with a parameter that no loss uses.
struct Network {
  Network() : body{nn::Linear(6, 9), nn::Tanh(), nn::Linear(9, 4)}, unused(full({3}, 1.0)) { unused.requires_grad_(); }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = body.parameters();
    all.push_back(unused);
    return all;
  }
  Tensor loss(const Tensor& x) const { return mean(square(body(x))); }
  nn::Sequential body;
  Tensor unused;
};

// The same rows on all ranks: 24 samples.
Tensor samples() {
  std::vector<float> values(24 * 6);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 25.f;
  return Tensor::from(values, {24, 6});
}
// This rank's part of the rows, in the order of ranks.
Tensor part(const Tensor& rows, int of, int parts) {
  const int64_t each = rows.size(0) / parts;
  return narrow(rows, 0, of * each, each);
}

std::vector<std::vector<double>> gradients(const Network& network) {
  std::vector<std::vector<double>> all;
  for (const Tensor& each : network.parameters())
    all.push_back(each.grad().defined() ? cast(each.grad(), DType::f64).to_vector<double>() : std::vector<double>());
  return all;
}
void expect_near(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size()) << "parameter " << i;
    for (size_t k = 0; k < a[i].size(); ++k) ASSERT_NEAR(a[i][k], b[i][k], 1e-6) << "parameter " << i;
  }
}

// Makes a network as rank 0 does, whatever the rank.
Network network_of_rank_0() {
  manual_seed(7);
  return {};
}

std::vector<std::vector<double>> whole_batch() {
  const Network network = network_of_rank_0();
  network.loss(samples()).backward();
  return gradients(network);
}

std::unique_ptr<pd::DataParallel> parallel(const Network& network, const pd::DataParallelOptions& options = {}) {
  return std::make_unique<pd::DataParallel>(network.parameters(), std::vector<Tensor>(), options);
}

TEST(DataParallel, GradientsAreThoseOfTheWholeBatch) {
  manual_seed(static_cast<uint64_t>(7 + rank()));  // parameters become those of rank 0
  const Network network;
  const auto data = parallel(network, {.bucket_bytes = 64});
  for (int step = 0; step < 3; ++step) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    network.loss(part(samples(), rank(), size())).backward();
    expect_near(gradients(network), whole_batch());
  }
  EXPECT_FALSE(network.unused.grad().defined());
  const pd::DataParallelFigures figures = data->figures();
  EXPECT_EQ(figures.steps, 3u);
  EXPECT_GT(figures.buckets, 2u);
  EXPECT_GT(figures.early, 2u);  // in each step but the first all but the unused parameter's bucket may start early
}

// Slice by slice on one rank, then the tree and the mean, as slices promises.
std::vector<std::vector<double>> sliced_alone(int slices, DType dtype) {
  Network network = network_of_rank_0();
  for (Tensor& each : network.parameters()) each.convert_(dtype);
  std::vector<std::vector<Tensor>> rows;
  for (int s = 0; s < slices; ++s) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    network.loss(cast(part(samples(), s, slices), dtype)).backward();
    rows.emplace_back();
    for (const Tensor& each : network.body.parameters()) rows.back().push_back(cast(each.grad(), DType::f32));
  }
  for (size_t step = 1; step < rows.size(); step *= 2)
    for (size_t i = 0; i + step < rows.size(); i += 2 * step)
      for (size_t k = 0; k < rows[i].size(); ++k) rows[i][k] = rows[i][k] + rows[i + step][k];
  std::vector<std::vector<double>> all;
  for (const Tensor& each : rows[0]) all.push_back(cast(cast(each * (1.0 / slices), dtype), DType::f64).to_vector<double>());
  all.emplace_back();
  return all;
}

// The same bits whatever the number of ranks, the engine and the buckets.
TEST(DataParallel, SlicesFixTheBits) {
  if (size() & (size() - 1)) GTEST_SKIP() << "slices fix the bits for powers of two of ranks";
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const uint64_t bytes : {uint64_t{40}, uint64_t{1} << 20}) {
      Network network = network_of_rank_0();
      for (Tensor& each : network.parameters()) each.convert_(dtype);
      const auto data = parallel(network, {.bucket_bytes = bytes, .slices = 8});
      ASSERT_EQ(data->passes(), 8 / size());
      for (int step = 0; step < 2; ++step) {
        for (int i = 0; i < data->passes(); ++i)
          network.loss(cast(part(samples(), rank() * data->passes() + i, 8), dtype)).backward();
        EXPECT_EQ(gradients(network), sliced_alone(8, dtype)) << dtype_name(dtype) << ", buckets of " << bytes;
      }
    }
}

TEST(DataParallel, WeightsMakeUnevenPartsRight) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  // The last rank has what the others leave: 2 rows each.
  const int64_t rows = rank() + 1 < size() ? 2 : 24 - 2 * (size() - 1);
  data->set_weight(static_cast<double>(rows));
  network.loss(narrow(samples(), 0, 2 * rank(), rows)).backward();
  expect_near(gradients(network), whole_batch());
}

TEST(DataParallel, ARankWithoutDataTakesPart) {
  if (size() == 1) GTEST_SKIP() << "one rank has no other";
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  const bool has_data = rank() == size() - 1;
  for (int step = 0; step < 2; ++step) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    if (has_data) network.loss(samples()).backward();
    else EXPECT_TRUE(data->step_without_data());
    expect_near(gradients(network), whole_batch());
  }
  EXPECT_FALSE(data->step_without_data());  // no rank has data any more
}

TEST(DataParallel, AccumulationReducesOnce) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  const Tensor mine = part(samples(), rank(), size()), half = part(mine, 0, 2), other = part(mine, 1, 2);
  {
    const pd::NoSync accumulate(*data);
    mul(network.loss(half), 0.5).backward();
  }
  EXPECT_EQ(data->figures().steps, 0u);
  mul(network.loss(other), 0.5).backward();
  EXPECT_EQ(data->figures().steps, 1u);
  expect_near(gradients(network), whole_batch());
}

// A second step without clearing adds to the mean of the first, as in PyTorch.
TEST(DataParallel, GradientsAddUpOverSteps) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  for (int step = 0; step < 2; ++step) network.loss(part(samples(), rank(), size())).backward();
  auto twice = whole_batch();
  for (auto& each : twice)
    for (double& x : each) x *= 2;
  expect_near(gradients(network), twice);
}

// Only rank 0 uses a parameter.
TEST(DataParallel, UnusedParametersNeedNoOption) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network, {.bucket_bytes = 64});
  for (int step = 0; step < 2; ++step) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    const Tensor loss = network.loss(samples());
    (rank() == 0 ? loss + sum(network.unused) : loss).backward();
    ASSERT_TRUE(network.unused.grad().defined());
    EXPECT_NEAR(network.unused.grad().to_vector<float>()[0], 1.0 / size(), 1e-6);
  }
}

TEST(DataParallel, ARankThatUsesFewerParametersInSeveralPasses) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network, {.bucket_bytes = 64, .slices = 2 * size()});
  for (int step = 0; step < 2; ++step)
    for (int pass = 0; pass < 2; ++pass) {
      const Tensor loss = network.loss(samples());
      (rank() == size() - 1 ? loss + sum(network.unused) : loss).backward();
    }
  EXPECT_NEAR(network.unused.grad().to_vector<float>()[0], 1.0 / size(), 1e-6);
}

// A gradient that is not accumulated is not the step's.
TEST(DataParallel, OtherGradientsDoNotDisturb) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  const std::vector<Tensor> parameters = network.body.parameters();
  (void)grad({network.loss(samples())}, parameters);
  network.loss(part(samples(), rank(), size())).backward();
  EXPECT_EQ(data->figures().steps, 1u);
  expect_near(gradients(network), whole_batch());
}

TEST(DataParallel, TrainsAsOneProcessDoes) {
  const Network here = network_of_rank_0(), alone = network_of_rank_0();
  const auto data = parallel(here);
  nn::Adam optimizer(here.parameters(), 1e-2), reference(alone.parameters(), 1e-2);
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    here.loss(part(samples(), rank(), size())).backward();
    optimizer.step();
    reference.zero_grad();
    alone.loss(samples()).backward();
    reference.step();
  }
  EXPECT_NEAR(here.loss(samples()).item<double>(), alone.loss(samples()).item<double>(), 1e-5);
}

TEST(DataParallel, BuffersBecomeThoseOfRank0) {
  const Network network;
  Tensor buffer = full({5}, rank());
  pd::DataParallel data(network.parameters(), {buffer});
  EXPECT_EQ(buffer.to_vector<float>(), std::vector<float>(5));
  buffer.fill_(rank() + 1);
  data.broadcast_buffers();
  EXPECT_EQ(buffer.to_vector<float>(), std::vector<float>(5, 1.f));
}

TEST(DataParallel, ErrorsNameWhatIsWrong) {
  const Network network;
  const auto expect = [](const auto& action, const char* words) { expect_mentions(message_of(action), words); };
  expect([&] { pd::DataParallel({zeros({2})}, {}); }, "no parameter requires a gradient");
  expect([&] { parallel(network, {.slices = -1}); }, "a multiple of their number expected");
  expect([&] { parallel(network)->set_weight(0); }, "a weight of 0");
  expect([&] { pd::NoSync(*parallel(network, {.slices = 2 * size()})); }, "leave no_sync out");
  if (size() == 1) return;
  expect([&] { parallel(network, {.slices = size() + 1}); }, "a multiple of their number expected");
  Tensor mine = zeros({2 + rank() % 2});
  mine.requires_grad_();
  expect([&] { pd::DataParallel({mine}, {}); }, "make the same model on all ranks");
}

// Trains a network by steps of several kinds, and returns its parameters.
struct Kind {
  pd::DataParallelOptions options = {};
  DType dtype = DType::f32;
  bool clears = true;  // whether gradients start from none in each step
};
std::vector<std::vector<float>> trained(const Kind& kind, bool compiled, CompileFigures* figures = nullptr) {
  Network network = network_of_rank_0();
  if (kind.dtype != DType::f32) network.body.to(kind.dtype);
  const auto data = parallel(network, kind.options);
  nn::Adam optimizer(network.parameters(), 1e-2);
  const auto pass = [&](const Tensor& x) {
    data->set_weight(static_cast<double>(x.size(0)));
    network.loss(x).backward();
  };
  const int parts = size() * data->passes();
  auto whole = compile([&](const Tensor& x) {
    if (kind.clears) optimizer.zero_grad();
    pass(x);
    optimizer.step();
  });
  auto one = compile(pass);
  for (int step = 0; step < 20; ++step) {
    // The last ranks have fewer rows in some steps.
    const Tensor rows = cast(step % 3 == 2 ? narrow(samples(), 0, 0, 24 - parts / 2) : samples(), kind.dtype);
    const bool is_single = data->passes() == 1;
    if (!is_single && kind.clears) optimizer.zero_grad();
    for (int i = 0; i < data->passes(); ++i) {
      const int64_t at = rank() * data->passes() + i, begin = at * 24 / parts,
                    end = std::min((at + 1) * 24 / parts, rows.size(0));
      if (begin >= end) {
        data->pass_without_data();
        if (is_single) optimizer.step();
        continue;
      }
      const Tensor x = clone(narrow(rows, 0, begin, end - begin));
      if (compiled && is_single) whole(x);
      else if (compiled) one(x);
      else {
        if (is_single && kind.clears) optimizer.zero_grad();
        pass(x);
        if (is_single) optimizer.step();
      }
    }
    if (!is_single) optimizer.step();
  }
  if (figures) *figures = data->passes() == 1 ? whole.figures() : one.figures();
  std::vector<std::vector<float>> all;
  for (const Tensor& each : network.parameters()) all.push_back(cast(each, DType::f32).to_vector<float>());
  return all;
}

TEST(DataParallel, ACompiledStepHasTheBitsOfTheFunction) {
  const std::vector<Kind> kinds{{},
                                {{.bucket_bytes = 64}},
                                {{.bucket_bytes = 64}, DType::bf16},
                                {{}, DType::f32, false},
                                {{.bucket_bytes = 64, .slices = 4 * size()}},
                                {{.slices = 2 * size()}, DType::bf16}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    CompileFigures figures;
    ASSERT_EQ(trained(kinds[i], true, &figures), trained(kinds[i], false)) << "kind " << i;
    EXPECT_GE(figures.replayed, 2u) << "kind " << i;
  }
}

TEST(DataParallel, ACompiledStepKnowsNoSync) {
  const Network network = network_of_rank_0(), other = network_of_rank_0();
  const auto data = parallel(network), same = parallel(other);
  auto compiled = compile([&](const Tensor& x) { network.loss(x).backward(); });
  const auto run = [&](const Network& net, pd::DataParallel& of, auto&& step) {
    std::vector<std::vector<std::vector<double>>> all;
    for (int i = 0; i < 12; ++i) {
      if (i % 2 == 0)
        for (Tensor& each : net.parameters()) each.clear_grad();
      const Tensor x = add(part(samples(), rank(), size()), 0.1 * i);
      if (i % 2 == 0) {
        const pd::NoSync accumulating(of);
        step(x);
      } else {
        step(x);
      }
      all.push_back(gradients(net));
    }
    return all;
  };
  const auto expected = run(other, *same, [&](const Tensor& x) { other.loss(x).backward(); });
  EXPECT_EQ(run(network, *data, compiled), expected);
  EXPECT_GE(compiled.figures().replayed, 6u);
  EXPECT_EQ(data->figures().steps, 6u);
}

TEST(DataParallel, ACompiledStepNamesParametersThatChange) {
  const Network network = network_of_rank_0();
  const auto data = parallel(network);
  bool uses = false;
  auto step = compile([&](const Tensor& x) {
    for (Tensor& each : network.parameters()) each.clear_grad();
    Tensor loss = network.loss(x);
    if (uses) loss = loss + sum(network.unused);
    loss.backward();
  });
  const Tensor x = part(samples(), rank(), size());
  for (int i = 0; i < 4; ++i) step(x);
  if (size() == 1) return;
  // The last rank uses one more parameter, by a recording of its own.
  uses = rank() == size() - 1;
  const Tensor more = uses ? clone(narrow(samples(), 0, 0, 2)) : x;
  const std::string why = message_of([&] { step(more); });
  if (uses) EXPECT_EQ(why, "no error");
  else expect_mentions(why, "has a gradient in this step, and had none when the step was compiled");
}

// With two buckets, the first starts before the gradients of the first layer exist.
TEST(DataParallel, TheFirstBucketStartsEarly) {
  if (size() == 1) GTEST_SKIP() << "one rank exchanges nothing";
  const Network network = network_of_rank_0();
  const auto data = parallel(network, {.bucket_bytes = 64});
  const Tensor x = part(samples(), rank(), size());
  network.loss(x).backward();
  Profiler profiler;
  network.loss(x).backward();
  profiler.stop();
  int64_t start = INT64_MAX, first_layer = -1;
  size_t exchanges = 0;
  for (const ProfileEvent& each : profiler.events()) {
    const bool is_start = each.kind == EventKind::exchange && each.name.ends_with(", start");
    if (is_start) start = std::min(start, each.begin);
    else exchanges += each.kind == EventKind::exchange;
    if (each.kind == EventKind::gradient && each.name == "linear") first_layer = std::max(first_layer, each.begin);
  }
  EXPECT_LT(start, first_layer);
  EXPECT_EQ(exchanges, data->figures().buckets);
}

}  // namespace
}  // namespace plugrad::test
