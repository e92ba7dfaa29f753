// The progress bar when stderr is not a terminal.
#include <plugrad/training/progress.hpp>

#include <gtest/gtest.h>
#include <stdexcept>

namespace plugrad {
namespace {

TEST(Progress, PrintsOneLineAtTheEnd) {
  testing::internal::CaptureStderr();
  int calls = 0;
  {
    Progress bar(4, "epoch 1/2");
    for (int i = 0; i < 3; ++i) bar.update([&] { return "loss " + std::to_string(++calls); });
    bar.close();
    bar.close();
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.substr(0, 47), "epoch 1/2 [======================        ] 3/4 ");
  EXPECT_TRUE(text.ends_with(" s loss 1\n")) << text;
  EXPECT_EQ(calls, 1);
}

TEST(Progress, PrintsNothingUnlessEnabled) {
  testing::internal::CaptureStderr();
  {
    Progress bar(4, "label", false);
    bar.update();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, ATextThatFailsIsLeftOut) {
  testing::internal::CaptureStderr();
  {
    Progress bar(0);
    bar.update([]() -> std::string { throw std::runtime_error("no loss"); });
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("[==============================] 1/1 ") && text.ends_with(" s\n")) << text;
}

}  // namespace
}  // namespace plugrad
