// A program may use the headers of SDK and core together, such as a host with its own backend.
#include <plugrad/sdk/functions.hpp>
#include <plugrad/sdk/rows.hpp>

#include <plugrad/plugrad.hpp>

#include <gtest/gtest.h>
#include <type_traits>

namespace plugrad::test {
namespace {

TEST(SdkHeaders, NameNothingThatTheCoreNames) {
  static_assert(std::has_virtual_destructor_v<Function>);
  EXPECT_EQ(OpFunction<PLUGRAD_OP_ADD>()(2.0f, 3.0f), add(Tensor::from<float>({2}, {1}), 3).item<float>());
}

}  // namespace
}  // namespace plugrad::test
