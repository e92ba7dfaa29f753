// Compares each gradient and each second derivative with central differences in f64, for each layout of the operands. The
// device under test computes the gradients. The host computes the differences, which take hundreds of evaluations.
#include <tests/core/gradient_rows.hpp>

#include <plugrad/sdk/ops.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

namespace plugrad::test {
namespace {
enum class Arrangement { dense, transposed, reversed, expanded };
constexpr const char* kArrangements[] = {"Dense", "Transposed", "Reversed", "Expanded"};

bool applies(Arrangement arrangement, const GradientRow& row) {
  int rank = 0;
  for (const Shape& shape : row.shapes) rank = std::max(rank, shape.rank());
  switch (arrangement) {
    case Arrangement::dense: return true;
    case Arrangement::transposed: return rank >= 2;
    case Arrangement::reversed: return rank >= 1;
    case Arrangement::expanded: return rank >= 1 && !row.ties;  // equal elements are ties
  }
  return false;
}

// The shape of a leaf from which an operand of `shape` is taken.
Shape leaf_shape(Arrangement arrangement, Shape shape) {
  const int rank = shape.rank();
  if (arrangement == Arrangement::transposed && rank >= 2)
    std::swap(shape[static_cast<size_t>(rank - 1)], shape[static_cast<size_t>(rank - 2)]);
  if (arrangement == Arrangement::reversed && rank)
    shape[static_cast<size_t>(rank - 1)] = 2 * shape[static_cast<size_t>(rank - 1)] + 1;
  if (arrangement == Arrangement::expanded && rank) shape[0] = 1;
  return shape;
}

Tensor arranged(Arrangement arrangement, const Tensor& leaf, const Shape& shape) {
  if (arrangement == Arrangement::transposed && shape.rank() >= 2) return transpose(leaf);
  if (arrangement == Arrangement::reversed && shape.rank()) return slice(leaf, -1, -2, -leaf.size(-1) - 1, -2);
  if (arrangement == Arrangement::expanded && shape.rank()) return expand(leaf, shape);
  return leaf;
}

using Values = std::vector<std::vector<double>>;

// One row in one arrangement: a scalar function of leaves.
class Problem {
 public:
  Problem(const GradientRow& row, Arrangement arrangement) : row_(row), arrangement_(arrangement) {
    for (size_t i = 0; i < row.shapes.size(); ++i) {
      shapes_.push_back(leaf_shape(arrangement, row.shapes[i]));
      values_.push_back(spread(shapes_[i].count(), row.low, row.high,
                               0.37 + 0.31 * static_cast<double>(i) / static_cast<double>(row.shapes.size())));
    }
  }
  const Values& values() const { return values_; }

  Inputs leaves(const Values& values) const {
    Inputs all;
    for (size_t i = 0; i < values.size(); ++i) all.push_back(f64(values[i], shapes_[i]).requires_grad_());
    return all;
  }
  // The sum of the result's elements, each with its own weight.
  Tensor loss(const Inputs& leaves) const {
    Inputs operands;
    for (size_t i = 0; i < leaves.size(); ++i) operands.push_back(arranged(arrangement_, leaves[i], row_.shapes[i]));
    return weighted(row_.apply(operands), 0.5);
  }
  static Tensor weighted(const Tensor& x, double low) { return sum(x * f64(spread(x.count(), low, low + 1), x.shape())); }

 private:
  const GradientRow& row_;
  Arrangement arrangement_;
  std::vector<Shape> shapes_;
  Values values_;
};

double step_of(const GradientRow& row) {
  const std::string op = row.op;
  return op == "cast" || op == "dequantize" ? kCastStep : kStep;
}

// New tensors are on the host during the lifetime of this object.
class OnTheHost {
 public:
  OnTheHost() { set_default_device(has_device("cpu") ? "cpu" : "reference"); }
  ~OnTheHost() { set_default_device(before_); }
  OnTheHost(const OnTheHost&) = delete;
  OnTheHost& operator=(const OnTheHost&) = delete;

 private:
  const Device before_ = default_device();
};

// The central difference of f along each element of each leaf.
template <class F> Values differences(const Problem& problem, double step, F f) {
  const OnTheHost host;
  Values all = problem.values(), at = problem.values();
  for (size_t i = 0; i < at.size(); ++i)
    for (size_t j = 0; j < at[i].size(); ++j) {
      const double centre = at[i][j];
      at[i][j] = centre + step;
      const double above = f(at);
      at[i][j] = centre - step;
      all[i][j] = (above - f(at)) / (2 * step);
      at[i][j] = centre;
    }
  return all;
}

// The value of f at the problem's point, computed by the host.
template <class F> double on_the_host(const Problem& problem, F f) {
  const OnTheHost host;
  return f(problem.values());
}

Inputs first_gradients(const Problem& problem, const Inputs& leaves, bool create_graph) {
  return grad({problem.loss(leaves)}, leaves, {.create_graph = create_graph});
}

// A weighted sum of all first derivatives.
Tensor combined(const Inputs& gradients) {
  Tensor total = f64({0}, {});
  for (size_t i = 0; i < gradients.size(); ++i)
    total = total + Problem::weighted(gradients[i], -0.75 + static_cast<double>(i));
  return total;
}

// The gradient of the weighted sum; zero where the sum does not depend on the leaves.
Values second_derivatives(const Problem& problem) {
  const Inputs leaves = problem.leaves(problem.values());
  const Tensor total = combined(first_gradients(problem, leaves, true));
  Values all;
  Inputs seconds(leaves.size());
  if (total.requires_grad()) seconds = grad({total}, leaves, {.allow_unused = true});
  for (size_t i = 0; i < leaves.size(); ++i)
    all.push_back(seconds[i].defined() ? elements(seconds[i]) : std::vector<double>(problem.values()[i].size()));
  return all;
}

void expect_away_from_kinks(const GradientRow& row, const Values& values) {
  std::vector<double> all = row.kinks;
  for (const auto& each : values) {
    for (double value : each)
      for (double kink : row.kinks) EXPECT_GE(std::abs(value - kink), kKinkDistance);
    all.insert(all.end(), each.begin(), each.end());
  }
  std::ranges::sort(all);
  for (size_t i = 1; row.ties && i < all.size(); ++i) EXPECT_GE(all[i] - all[i - 1], kKinkDistance);
}

class Gradient : public ::testing::TestWithParam<GradientRow> {
 protected:
  void SetUp() override {
    if (!GetParam().falls_back) return;
    if (!has_device("cpu")) GTEST_SKIP() << "no plugin here factors matrices";
    set_fallback(Fallback::allow);
  }
  void TearDown() override { set_fallback(before_); }
  const Fallback before_ = fallback();

  // Calls check for each arrangement of the row's operands.
  template <class F> void each_problem(F check) {
    for (Arrangement each : {Arrangement::dense, Arrangement::transposed, Arrangement::reversed, Arrangement::expanded}) {
      if (!applies(each, GetParam())) continue;
      SCOPED_TRACE(kArrangements[static_cast<size_t>(each)]);
      check(Problem(GetParam(), each));
    }
  }
};

TEST_P(Gradient, EqualsDifferences) {
  each_problem([&](const Problem& problem) {
    expect_away_from_kinks(GetParam(), problem.values());
    const auto loss = [&](const Values& at) { return problem.loss(problem.leaves(at)).item<double>(); };
    EXPECT_TRUE(close({loss(problem.values())}, {on_the_host(problem, loss)}, 1e-9));
    const Values expected = differences(problem, step_of(GetParam()), loss);
    const Inputs leaves = problem.leaves(problem.values());
    const Inputs fused = first_gradients(problem, leaves, false), composed = first_gradients(problem, leaves, true);
    for (size_t i = 0; i < leaves.size(); ++i) {
      EXPECT_TRUE(close(fused[i], leaves[i].shape(), expected[i], 1e-7)) << "input " << i;
      EXPECT_TRUE(close(composed[i], leaves[i].shape(), elements(fused[i]), 1e-13))
          << "input " << i << ", with a graph of its own";
    }
  });
}

TEST_P(Gradient, SecondDerivativeEqualsDifferencesOfTheFirst) {
  each_problem([&](const Problem& problem) {
    const auto first = [&](const Values& at) {
      return combined(first_gradients(problem, problem.leaves(at), false)).item<double>();
    };
    EXPECT_TRUE(close({first(problem.values())}, {on_the_host(problem, first)}, 1e-9));
    const Values expected = differences(problem, step_of(GetParam()), first);
    const Values actual = second_derivatives(problem);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(actual[i], expected[i], 1e-7)) << "input " << i;
  });
}

std::string row_name(const ::testing::TestParamInfo<GradientRow>& info) {
  std::string name = std::string(info.param.op) + info.param.variant;
  std::erase(name, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, Gradient, ::testing::ValuesIn(gradient_rows()), row_name);

// --- Every public op has a row.

const std::set<std::string>& shown() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const GradientRow& row : gradient_rows()) all.insert(row.op);
    return all;
  }();
  return names;
}

// The functions of the public headers that return one or several tensors.
std::set<std::string> public_functions() {
  std::set<std::string> names;
  const std::regex declaration(
      "PLUGRAD_API (?:Tensor|std::vector<Tensor>|ValuesIndices|MinMax|Unique|LuFactor|Lu|SlogDet|Qr|Eigh|Svd|LeastSquares) "
      "(\\w+)\\(");
  for (const auto& entry : std::filesystem::directory_iterator(PLUGRAD_OP_HEADERS)) {
    if (entry.path().stem() == "gradients") continue;  // unrecorded
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found)
      names.insert((*found)[1]);
  }
  return names;
}

const std::set<std::string> kWithoutGradient = {"eq",
                                                "integer_matmul",
                                                "ne",
                                                "lt",
                                                "le",
                                                "gt",
                                                "ge",
                                                "full",
                                                "zeros",
                                                "ones",
                                                "scalar",
                                                "rand",
                                                "randn",
                                                "full_like",
                                                "zeros_like",
                                                "ones_like",
                                                "arange",
                                                "fftfreq",
                                                "rfftfreq",
                                                "argmax",
                                                "isnan",
                                                "isinf",
                                                "all",
                                                "isfinite",
                                                "isclose",
                                                "logical_not",
                                                "logical_and",
                                                "logical_or",
                                                "logical_xor",
                                                "any",
                                                "count_nonzero",
                                                "argmin",
                                                "eye",
                                                "one_hot",
                                                "bitwise_and",
                                                "bitwise_or",
                                                "bitwise_xor",
                                                "bitwise_not",
                                                "bitwise_left_shift",
                                                "bitwise_right_shift",
                                                "heaviside",
                                                "signbit",
                                                "isposinf",
                                                "isneginf",
                                                "isreal",
                                                "nonzero_static",
                                                "linspace",
                                                "logspace",
                                                "empty",
                                                "empty_like",
                                                "tril_indices",
                                                "triu_indices",
                                                "clip_grad_norm_",
                                                "argsort",
                                                "isin",
                                                "searchsorted",
                                                "bucketize",
                                                "histc",
                                                "rand_like",
                                                "randn_like",
                                                "randint",
                                                "randint_like",
                                                "randperm",
                                                "bernoulli",
                                                "multinomial",
                                                "normal",
                                                "exponential",
                                                "wrap_indices",
                                                "nonzero",
                                                "argwhere",
                                                "matrix_rank"};

TEST(GradientRows, EveryPublicFunctionHasOneOrNoGradient) {
  const std::set<std::string> functions = public_functions();
  ASSERT_GT(functions.size(), 40u);
  for (const std::string& name : functions) EXPECT_NE(shown().contains(name), kWithoutGradient.contains(name)) << name;
  for (const std::string& name : shown()) EXPECT_TRUE(functions.contains(name)) << name;
  for (const std::string& name : kWithoutGradient) EXPECT_TRUE(functions.contains(name)) << name;
}

// The name of the public function that runs an op.
std::string function_of(const OpInfo& op) {
  if (op.opcode == PLUGRAD_OP_COPY) return "clone";
  if (op.opcode == PLUGRAD_OP_QUOTIENT) return "floor_divide";
  if (op.opcode == PLUGRAD_OP_GELU_TANH || op.opcode == PLUGRAD_OP_GELU_TANH_BACKWARD) return "gelu";
  if (op.opcode == PLUGRAD_OP_SCATTER_SUM) return "gather";  // scatter_sum computes the gradient of gather
  std::string name = op.name;
  if (name.starts_with("CONVOLUTION")) return "conv2d";
  if (name.starts_with("MAX_POOL")) return "max_pool2d";
  if (name == "MATMUL_ADD") return "linear";
  if (name.starts_with("ATTENTION")) return "scaled_dot_product_attention";
  if (name.ends_with("_BACKWARD")) name.resize(name.size() - std::string_view("_BACKWARD").size());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

TEST(GradientRows, EveryOpOfTheTableHasOneWhereItsFunctionHasAGradient) {
  for (const OpInfo& op : kOps) {
    const bool constant = op.shape == OpShape::generate || op.shape == OpShape::random || op.shape == OpShape::update;
    const std::string name = function_of(op);
    EXPECT_TRUE(constant || shown().contains(name) || kWithoutGradient.contains(name)) << op.name << " has no row";
  }
}

}  // namespace
}  // namespace plugrad::test
