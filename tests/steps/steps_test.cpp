// Random steps of views, parts, writes in place, gradients, updates. Replays give the same bits as eager ops.
#include <tests/steps/twins.hpp>

#include <cstdlib>
#include <random>

namespace plugrad::test {
namespace {

constexpr int kCalls = 5, kLength = 20;

// The tensors that a step uses.
struct World {
  World(uint64_t seed, int64_t rows, int64_t columns) {
    manual_seed(seed);
    const auto uniform = [](const Shape& shape) { return rand(shape, DType::f32, default_device(), -1, 1); };
    for (const Shape& shape : {Shape{rows, columns}, Shape{rows, 1}, Shape{columns}, Shape{rows, columns}, Shape{}})
      state.push_back(uniform(shape));
    for (const Shape& shape : {Shape{rows, columns}, Shape{columns}, Shape{rows, 1}, Shape{columns, columns}})
      leaves.push_back(uniform(shape).requires_grad_());
  }
  Tensors all() const {
    Tensors tensors = state;
    for (const Tensor& each : leaves) tensors.insert(tensors.end(), {each.detach(), each.grad()});
    return tensors;
  }
  Tensors state;   // written in place
  Tensors leaves;  // require gradients
};

// A step whose ops a seed chooses. The choice of ops never depends on the elements of a tensor.
class RandomStep {
 public:
  RandomStep(World& world, uint64_t seed, int length) : world_(world), seed_(seed), length_(length) {}

  Tensors operator()(const Tensor& x) {
    random_.seed(seed_);
    pool_ = world_.leaves;
    pool_.insert(pool_.end(), world_.state.begin(), world_.state.end());
    pool_.push_back(x);
    given_ = pool_.size();
    for (int i = 0; i < length_; ++i) add(made());
    Tensors results = differentiate();
    results.push_back(pool_.back().detach());
    pool_.clear();
    return results;
  }

 private:
  size_t pick(size_t n) { return static_cast<size_t>(random_() % n); }
  const Tensor& any() { return pool_[pick(pool_.size())]; }
  void add(Tensor x) {
    if (x.defined() && x.count() && x.count() <= 4 * world_.state[0].count()) pool_.push_back(std::move(x));
  }
  bool is_matrix(const Tensor& x) const { return x.rank() == 2; }

  Tensor made() {
    const Tensor a = any();
    switch (pick(20)) {
      case 0: return relu(a);
      case 1: return tanh(a);
      case 2: return sigmoid(a) * 0.5;
      case 3: return neg(abs(a));
      case 4: return sqrt(a * a + 1);
      case 5:
      case 6:
      case 7: return combined(a, any());
      case 8: return is_matrix(a) ? sum(a, {static_cast<int64_t>(pick(2))}, true) * 0.05 : mean(a);
      case 9: return is_matrix(a) && a.size(1) == world_.leaves[3].size(0) ? matmul(a, world_.leaves[3]) * 0.3 : Tensor();
      case 10: return is_matrix(a) ? contiguous(transpose(a)) * 0.5 : a * 2;
      case 11: return is_matrix(a) ? transpose(a) + 0.25 : Tensor();
      case 12: return is_matrix(a) && a.size(0) > 3 ? slice(a, 0, 1, 3) * 1.5 : Tensor();
      case 13: return is_matrix(a) ? log_softmax(a, 1) : Tensor();
      case 14: return dropout(a, 0.25, true);
      case 15: return cast(cast(a, DType::f64) * 3, DType::f32);
      case 16: return where(gt(a, 0.1), a, a * 0.1);
      case 17: return is_matrix(a) ? cast(argmax(a, {1}), DType::f32) * 0.01 : Tensor();
      default: return write_in_place(a), Tensor();
    }
  }

  Tensor combined(const Tensor& a, const Tensor& b) {
    const Shape &x = a.shape(), &y = b.shape();
    for (int i = 1; i <= std::min(x.rank(), y.rank()); ++i) {
      const int64_t m = x[x.rank() - i], n = y[y.rank() - i];
      if (m != n && m != 1 && n != 1) return Tensor();
    }
    switch (pick(3)) {
      case 0: return a + b;
      case 1: return a * b;
      default: return maximum(a, b);
    }
  }

  void write_in_place(const Tensor& a) {
    const NoGrad unrecorded;
    Tensor& s = world_.state[pick(world_.state.size())];
    switch (pick(4)) {
      case 0: return s.mul_(0.9);
      case 1:
        if (a.shape() == s.shape()) s.add_(tanh(a.detach()), 0.01);
        return;
      case 2: return s.fill_(0.25);
      default: break;
    }
    if (!is_matrix(s) || s.size(0) < 4) return;
    Tensor part = slice(s, 0, 1, 3);
    part.mul_(0.5);
    part.copy_(part * 0.5 + 0.1);
  }

  // Computes a loss of some of the tensors that the step made, and changes the leaves by their gradients.
  Tensors differentiate() {
    Tensor loss;
    for (size_t i = given_; i < pool_.size(); ++i) {
      if (!pool_[i].requires_grad() || !pick(2)) continue;
      const Tensor part = mean(pool_[i]);
      loss = loss.defined() ? loss + part : part;
    }
    if (!loss.defined()) return {};
    if (pick(2))
      for (Tensor& each : world_.leaves) each.clear_grad();
    try {
      loss.backward();
    } catch (const Error&) {
      return {};  // a saved value was written in place
    }
    const NoGrad unrecorded;
    for (Tensor& each : world_.leaves)
      if (each.grad().defined()) each.add_(tanh(each.grad()), -0.05);
    return {loss.detach()};
  }

  World& world_;
  uint64_t seed_;
  int length_;
  std::mt19937_64 random_;
  Tensors pool_;
  size_t given_ = 0;
};

// Returns the results of several calls of a step and the tensors that it wrote.
Tensors run(bool compiled, uint64_t seed, size_t* replayed) {
  const bool is_large = seed % 50 == 11;  // gradients are large enough for other tensors to reuse their memory
  const int64_t rows = is_large ? 400 : seed % 3 ? 37 : 300, columns = is_large ? 64 : seed % 2 ? 16 : 5;
  World world(seed, rows, columns);
  Twin step(compiled, RandomStep(world, seed, kLength));
  Tensors all;
  for (int i = 0; i < kCalls; ++i) {
    const Tensors results = step(rand({rows, columns}, DType::f32, default_device(), -1, 1));
    all.insert(all.end(), results.begin(), results.end());
  }
  const Tensors left = world.all();
  all.insert(all.end(), left.begin(), left.end());
  if (replayed) *replayed += step.step().figures().replayed;
  return all;
}

TEST(RandomSteps, HaveTheSameBits) {
  const char* text = std::getenv("PLUGRAD_RANDOM_STEPS");
  const uint64_t steps = text ? std::strtoull(text, nullptr, 10) : 200;
  size_t replayed = 0;
  for (uint64_t seed = 1; seed <= steps; ++seed)
    ASSERT_TRUE(same_bytes(run(true, seed, &replayed), run(false, seed, nullptr))) << "seed " << seed;
  EXPECT_GT(replayed, steps * 2) << "most steps are replayed";
}

}  // namespace
}  // namespace plugrad::test
