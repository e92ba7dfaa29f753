#include <tools/train/loss_plot.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace plugrad::test {
namespace {

// Expects that each tag is closed, that attributes are quoted and that nothing is outside the root element.
void expect_well_formed(const std::string& text) {
  std::vector<std::string> open;
  size_t roots = 0;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    const size_t end = text.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    EXPECT_EQ(tag.find('<'), std::string::npos) << tag;
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      roots += open.empty();
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(roots, 1u);
}

size_t count_of(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

training::LossPlot sample(int64_t steps) {
  training::LossPlot plot{"a title", "a subtitle", {}, {{steps / 2, 0.8}, {steps, 0.9}}};
  for (int64_t i = 1; i <= steps; ++i) plot.loss.push_back({i, 2.3 / std::sqrt(static_cast<double>(i))});
  return plot;
}

TEST(LossPlot, HasAxesCurvesAndLabels) {
  const std::string svg = training::loss_plot_svg(sample(500));
  expect_well_formed(svg);
  EXPECT_EQ(count_of(svg, "<polyline"), 3u);
  EXPECT_EQ(count_of(svg, "<circle"), 2u);
  for (const char* words : {">a title</text>", ">a subtitle</text>", ">step</text>", ">loss</text>", ">accuracy</text>",
                            ">90.0%</text>", ">100%</text>", ">500</text>"}) {
    EXPECT_EQ(count_of(svg, words), 1u) << words;
  }
}

TEST(LossPlot, TextIsEscaped) {
  training::LossPlot plot = sample(10);
  plot.title = "<script>alert(\"&\")</script>";
  plot.subtitle = "a\nb";
  const std::string svg = training::loss_plot_svg(plot);
  expect_well_formed(svg);
  EXPECT_EQ(count_of(svg, "<script>"), 0u);
  EXPECT_EQ(count_of(svg, "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"), 2u);
  EXPECT_EQ(count_of(svg, ">a b<"), 1u);
}

TEST(LossPlot, OddDataStillMakeAPicture) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const training::LossPlot plots[] = {{},
                                      {"one", "", {{1, 0.5}}, {}},
                                      {"zero", "", {{1, 0}, {2, 0}}, {{2, 0}}},
                                      {"not finite", "", {{1, nan}, {2, infinity}, {3, 1}}, {{3, nan}}},
                                      {"nothing finite", "", {{1, nan}}, {}},
                                      {"tiny", "", {{1, 1e-300}, {2, 1e-308}}, {}},
                                      {"huge", "", {{1, 1e300}, {2, 1}}, {}},
                                      {"negative", "", {{1, -1}, {2, -2}}, {}}};
  for (const training::LossPlot& plot : plots) {
    SCOPED_TRACE(plot.title);
    const std::string svg = training::loss_plot_svg(plot);
    expect_well_formed(svg);
    EXPECT_EQ(count_of(svg, "nan"), 0u);
    EXPECT_EQ(count_of(svg, "inf"), 0u);
    EXPECT_LT(svg.size(), 100000u);
  }
}

TEST(LossPlot, ALongRunIsNoLargerThanThePictureCanShow) {
  EXPECT_LT(training::loss_plot_svg(sample(1000000)).size(), 100000u);
}

TEST(LossPlot, TheLocaleChangesNothing) {
  const std::string before = training::loss_plot_svg(sample(100));
  if (!std::setlocale(LC_NUMERIC, "de_DE.UTF-8")) GTEST_SKIP() << "no locale with a decimal comma is installed";
  const std::string after = training::loss_plot_svg(sample(100));
  std::setlocale(LC_NUMERIC, "C");
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace plugrad::test
