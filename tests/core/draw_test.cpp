#include <plugrad/autograd/draw.hpp>
#include <plugrad/nn/value.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>

#include <gtest/gtest.h>
#include <string>

namespace plugrad {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Draw, ShowsValuesLabelsAndGradients) {
  Value a = 2.0, b = 3.0;
  a.set_label("a {1}");
  const Value c = relu(a * b) + 1;
  c.backward();
  const std::string text = draw_dot(c.tensor());
  EXPECT_EQ(count(text, "shape=record"), 6u);
  EXPECT_EQ(count(text, "label=\"*\""), 1u);
  EXPECT_NE(text.find("a\\ \\{1\\} | data 2 | grad 3"), std::string::npos) << text;
  EXPECT_NE(text.find("data 7 | grad 1"), std::string::npos) << text;
}

TEST(Draw, ShowsEachTensorOnceAndLargeOnesByShape) {
  Tensor x = ones({2, 3});
  x.requires_grad_();
  const std::string text = draw_dot(sum(x * x + x));
  EXPECT_EQ(count(text, "shape=record"), 4u) << text;
  EXPECT_EQ(count(text, "shape (2,\\ 3)"), 3u) << text;
  EXPECT_NE(text.find("data 12"), std::string::npos);
}

TEST(Draw, ShowsATensorWithoutAGraph) { EXPECT_EQ(count(draw_dot(ones({})), "data 1"), 1u); }

TEST(Draw, HasALimitAndFourDirections) {
  Value x = 1.0;
  for (int i = 0; i < 20; ++i) x = x * 1.0;
  EXPECT_THROW(draw_dot(x.tensor(), {.limit = 20}), Error);
  EXPECT_NE(draw_dot(x.tensor(), {.direction = "TB"}).find("rankdir=TB"), std::string::npos);
  EXPECT_THROW(draw_dot(x.tensor(), {.direction = "up"}), Error);
  EXPECT_THROW(draw_dot(Tensor()), Error);
}

// The traversal of a deep graph is a loop.
TEST(Draw, DoesNotRecurse) {
  Value x = 1.0;
  for (int i = 0; i < 50000; ++i) x = -x;
  EXPECT_GT(draw_dot(x.tensor(), {.limit = 100000}).size(), 1u << 20);
}

}  // namespace
}  // namespace plugrad
