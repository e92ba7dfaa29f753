// Factors of matrices, samples and schedules in compiled steps, against the same calls op by op.
#include <tests/steps/twins.hpp>

#include <plugrad/nn/schedules.hpp>
#include <plugrad/ops/linalg.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

// Only devices with the extension for factors compute them in steps.
bool factors() {
  try {
    (void)linalg::inv(eye(2, 2));
    return true;
  } catch (const Error&) {
    return false;
  }
}

Tensor random_matrix(uint64_t seed, const Shape& shape = {2, 4, 4}) {
  manual_seed(seed);
  return rand(shape, DType::f64) + eye(shape[shape.size() - 2], shape.back(), DType::f64);
}

using Function = Tensors (*)(const Tensor&);
struct Row {
  const char* name;
  Function f;
};

// With gradients, which factor again.
template <class F> Tensors with_gradient(const Tensor& x, F f) {
  Tensor leaf = clone(x.detach()).requires_grad_();
  const Tensor value = sum(f(leaf));
  value.backward();
  return {value.detach(), leaf.grad()};
}
Tensor squared(const Tensor& x) { return matmul(x, transpose(x)); }

const Row kRows[] = {
    {"solve", [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::solve(a, a * 2 + 1); }); }},
    {"inv", [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::inv(a); }); }},
    {"det", [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::det(a); }); }},
    {"slogdet",
     [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::slogdet(a).logabsdet; }); }},
    {"cholesky",
     [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::cholesky(squared(a)); }); }},
    {"qr", [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::qr(a).r; }); }},
    {"eigh",
     [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::eigh(squared(a)).eigenvalues; }); }},
    {"svd", [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::svd(a, false).s; }); }},
    {"pinv", [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::pinv(a); }); }},
    {"triangle",
     [](const Tensor& x) {
       return with_gradient(x, [](const Tensor& a) { return linalg::solve_triangular(a, a + 1, true); });
     }},
    {"lu",
     [](const Tensor& x) {
       const linalg::Lu parts = linalg::lu(x);
       return Tensors{parts.p, parts.l, parts.u};
     }},
    {"lstsq",
     [](const Tensor& x) {
       const linalg::LeastSquares found = linalg::lstsq(slice(x, -1, 0, 3), x);
       return Tensors{found.solution, found.residuals, found.rank};
     }},
    {"matrix_rank", [](const Tensor& x) { return Tensors{linalg::matrix_rank(x), linalg::svdvals(x)}; }},
};

TEST(CompiledLinalg, HasTheBitsOfSingleCalls) {
  if (!factors()) GTEST_SKIP() << "the device factors no matrices";
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    auto step = compile(row.f, {.name = row.name});
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const Tensor x = random_matrix(seed);
      EXPECT_TRUE(same_bytes(step(x), row.f(x))) << seed;
    }
    EXPECT_EQ(step.figures().replayed, 4u) << step.explain();
  }
}

TEST(CompiledLinalg, ReplaysRefuseSingularMatrices) {
  if (!factors()) GTEST_SKIP() << "the device factors no matrices";
  auto inverted = compile([](const Tensor& x) { return linalg::inv(x) * 2; });
  auto factored = compile([](const Tensor& x) { return linalg::cholesky(x); });
  const Tensor regular = eye(2, 2, DType::f64), singular = zeros({2, 2}, DType::f64);
  for (int i = 0; i < 3; ++i) {
    (void)inverted(regular), (void)factored(regular);
    EXPECT_TRUE(throws(Code::invalid, {"[linalg.inv]", "singular", "pivot 0"}, [&] { (void)inverted(singular); }));
    EXPECT_TRUE(throws(Code::invalid, {"[linalg.cholesky]", "not positive definite"}, [&] { (void)factored(singular); }));
  }
  EXPECT_EQ(inverted.figures().recorded, 1u);
  EXPECT_TRUE(same_bytes({inverted(regular)}, {regular * 2}));
}

// The gradient of a singular matrix's determinant needs factors of a matrix nearby.
TEST(CompiledLinalg, DeterminantsOfSingularMatricesHaveGradients) {
  if (!factors()) GTEST_SKIP() << "the device factors no matrices";
  const auto f = [](const Tensor& x) { return with_gradient(x, [](const Tensor& a) { return linalg::det(a); }); };
  auto step = compile(f);
  const Tensor singular = Tensor::from<double>({1, 2, 2, 4}, {2, 2});
  for (const Tensor& x : {random_matrix(1, {2, 2}), singular, random_matrix(2, {2, 2}), singular})
    EXPECT_TRUE(same_bytes(step(x), f(x)));
  EXPECT_EQ(step.figures().replayed, 3u);
}

TEST(CompiledLinalg, ResidualsOfLowerRankAreNaN) {
  if (!factors()) GTEST_SKIP() << "the device factors no matrices";
  auto step = compile([](const Tensor& x) { return linalg::lstsq(x, ones({3, 1}, DType::f64)).residuals; });
  EXPECT_FALSE(std::isnan(step(random_matrix(1, {3, 2})).item<double>()));
  EXPECT_TRUE(std::isnan(step(zeros({3, 2}, DType::f64)).item<double>()));
}

TEST(CompiledSamples, AreDrawnInEachReplay) {
  for (const bool replacement : {true, false}) {
    const auto f = [replacement](const Tensor& x) { return multinomial(x, 3, replacement); };
    auto step = compile(f);
    const Tensor x = rand({4, 6});
    std::vector<Tensors> drawn;
    for (const bool compiled : {true, false}) {
      manual_seed(3);
      for (int i = 0; i < 4; ++i) drawn.push_back({compiled ? step(x) : f(x)});
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bytes(drawn[i], drawn[i + 4]));
    EXPECT_EQ(step.figures().replayed, 3u);
    const Tensor refused = zeros({4, 6});
    EXPECT_EQ(step(refused).to_vector<int64_t>(), std::vector<int64_t>(12, -1));
  }
}

TEST(CompiledSchedules, StepInEachReplay) {
  const auto trained = [](bool compiled, size_t* replayed) {
    Tensor w = f32({1, 2}).requires_grad_();
    nn::SGD optimizer({w}, 0.5, {.momentum = 0.9});
    nn::CosineAnnealingLR cosine(optimizer, 10);
    Twin step(compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor loss = sum(w * x);
      loss.backward();
      optimizer.step();
      cosine.step();
      return loss.detach();
    });
    Tensors seen;
    for (int i = 0; i < 8; ++i) {
      if (i == 5) cosine.set_epoch(1);
      seen.push_back(step(one(i)));
      seen.push_back(full({1}, optimizer.option("lr"), DType::f64));
    }
    EXPECT_EQ(cosine.last_epoch(), 4);
    seen.push_back(w.detach());
    *replayed = step.step().figures().replayed;
    return seen;
  };
  size_t replayed = 0, none = 0;
  const Tensors compiled = trained(true, &replayed);
  EXPECT_TRUE(same_bytes(compiled, trained(false, &none)));
  EXPECT_EQ(replayed, 6u);
}

TEST(CompiledSchedules, MayEndBeforeTheStep) {
  Tensor w = f32({1}).requires_grad_();
  nn::SGD optimizer({w}, 0.5);
  auto schedule = std::make_unique<nn::StepLR>(optimizer, 1, 0.5);
  auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    sum(w * x).backward();
    optimizer.step();
    schedule->step();
  });
  for (int i = 0; i < 4; ++i) step(one(1));
  EXPECT_EQ(optimizer.option("lr"), 0.5 / 16);
  schedule = std::make_unique<nn::StepLR>(optimizer, 2, 0.1);
  for (int i = 0; i < 4; ++i) step(one(1));
  EXPECT_NEAR(optimizer.option("lr"), 0.5 * 0.01, 1e-12);
}

}  // namespace
}  // namespace plugrad::test
