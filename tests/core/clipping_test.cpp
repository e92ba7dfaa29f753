// Gradient clipping.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

// Two leaves with the gradients (3, 0) and (-4), and a leaf without a gradient.
std::vector<Tensor> parameters() {
  std::vector<Tensor> all = {f64({0, 0}).requires_grad_(), f64({0}).requires_grad_(), f64({0}).requires_grad_()};
  all[0].set_grad(f64({3, 0}));
  all[1].set_grad(f64({-4}));
  return all;
}

struct Row {
  double max_norm, type, total, factor;
};
const Row kRows[] = {{1, 2, 5, 1 / (5 + 1e-6)},
                     {10, 2, 5, 1},
                     {2, 1, 7, 2 / (7 + 1e-6)},
                     {2, HUGE_VAL, 4, 2 / (4 + 1e-6)},
                     {4, HUGE_VAL, 4, 4 / (4 + 1e-6)}};

TEST(Clipping, NormOfAllGradients) {
  for (const Row& row : kRows) {
    const auto all = parameters();
    EXPECT_TRUE(close(clip_grad_norm_(all, row.max_norm, row.type), {}, {row.total}, 1e-15)) << row.max_norm;
    EXPECT_TRUE(close(all[0].grad(), {2}, {3 * row.factor, 0}, 1e-15)) << row.max_norm;
    EXPECT_TRUE(close(all[1].grad(), {1}, {-4 * row.factor}, 1e-15)) << row.max_norm;
    EXPECT_FALSE(all[2].grad().defined());
  }
  EXPECT_TRUE(close(clip_grad_norm_({}, 1), {}, {0}));
  EXPECT_TRUE(throws(Code::invalid, {"[clip_grad_norm_]", "undefined"}, [] { clip_grad_norm_({Tensor()}, 1); }));
}

TEST(Clipping, ValuesOfAllGradients) {
  const auto all = parameters();
  clip_grad_value_(all, 3.5);
  EXPECT_TRUE(close(all[0].grad(), {2}, {3, 0}));
  EXPECT_TRUE(close(all[1].grad(), {1}, {-3.5}));
  EXPECT_TRUE(throws(Code::invalid, {"[clip_grad_value_]", "negative"}, [&] { clip_grad_value_(all, -1); }));
}

}  // namespace
}  // namespace plugrad::test
