// Bad operands: each message begins with the op and names the fault.
#include <tests/core/expect.hpp>

namespace plugrad::test {
namespace {

struct Two {
  const char* name;
  Tensor (*apply)(const Tensor& a, const Tensor& b);
};
const Two kTwo[] = {
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div},
    {"pow", pow},
    {"maximum", maximum},
    {"minimum", minimum},
    {"matmul", matmul},
    {"eq", eq},
    {"ne", ne},
    {"lt", lt},
    {"le", le},
    {"gt", gt},
    {"ge", ge},
    {"where", [](const Tensor& a, const Tensor& b) { return where(ones({2, 2}, DType::boolean), a, b); }},
    {"cat", [](const Tensor& a, const Tensor& b) { return cat({a, b}); }},
    {"stack", [](const Tensor& a, const Tensor& b) { return stack({a, b}); }},
    {"scatter_add",
     [](const Tensor& a, const Tensor& b) { return scatter_add(a, 0, to(zeros({2, 2}, DType::i64), a.device()), b); }},
};

TEST(Errors, TwoDtypesAreNamed) {
  const Tensor a = counting({2, 2}), b = counting({2, 2}, DType::f32);
  EXPECT_TRUE(throws(Code::invalid, {"[scatter_add]", "f64", "f32", "cast"},
                     [&] { scatter_add(a, 0, zeros({2, 2}, DType::i64), b); }));
}

TEST(Errors, TwoDevicesAreNamed) {
  const Device there = other_device();
  ASSERT_NE(there, default_device()) << "no second device among those built";
  const Tensor a = counting({2, 2}), b = to(a, there);
  for (const Two& each : kTwo)
    EXPECT_TRUE(throws(Code::invalid,
                       {"[" + std::string(each.name) + "]", default_device().name(), there.name(), "to(x, device)"},
                       [&] { each.apply(a, b); }))
        << each.name;
  const Tensor targets = to(i64({0, 1}), there);
  EXPECT_TRUE(
      throws(Code::invalid, {"[cross_entropy]", default_device().name(), there.name()}, [&] { cross_entropy(a, targets); }));
  EXPECT_TRUE(throws(Code::invalid, {"[gather]", default_device().name(), there.name()},
                     [&] { gather(a, 0, to(zeros({2, 2}, DType::i64), there)); }));
  EXPECT_TRUE(throws(Code::invalid, {"[where]", default_device().name(), there.name()},
                     [&] { where(to(ones({2}, DType::boolean), there), a, a); }));
}

struct One {
  const char* name;
  Tensor (*apply)(const Tensor& x);
};
const One kFloating[] = {
    {"log_softmax", [](const Tensor& x) { return log_softmax(x); }},
};
const One kNumbers[] = {
    {"neg", neg},
    {"abs", abs},
    {"sign", sign},
};

TEST(Errors, DtypesThatAnOpDoesNotTake) {
  const Tensor integers = ones({2}, DType::i64), bits = ones({2}, DType::boolean);
  for (const One& each : kFloating) {
    for (const Tensor& x : {integers, bits}) {
      const Thrown t = thrown([&] { each.apply(x); });
      EXPECT_NE(t.message.find("[" + std::string(each.name) + "]"), std::string::npos) << t.message;
      EXPECT_NE(t.message.find("floating dtype"), std::string::npos) << t.message;
    }
  }
  for (const One& each : kNumbers)
    EXPECT_TRUE(throws(Code::invalid, {"[" + std::string(each.name) + "]", "bool", "a dtype of numbers"}, [&] {
      each.apply(bits);
    })) << each.name;
  EXPECT_TRUE(throws(Code::invalid, {"[where]", "i64", "bool"}, [&] { where(integers, integers, integers); }));
}

struct Axes {
  const char* name;
  void (*apply)(const Tensor& x, int axis);
};
const Axes kAxes[] = {
    {"sum", [](const Tensor& x, int axis) { sum(x, {axis}); }},
    {"mean", [](const Tensor& x, int axis) { mean(x, {axis}); }},
    {"max", [](const Tensor& x, int axis) { max(x, {axis}); }},
    {"min", [](const Tensor& x, int axis) { min(x, {axis}); }},
    {"argmax", [](const Tensor& x, int axis) { argmax(x, {axis}); }},
    {"log_softmax", [](const Tensor& x, int axis) { log_softmax(x, axis); }},
    {"slice", [](const Tensor& x, int axis) { slice(x, axis, 0, 1); }},
    {"select", [](const Tensor& x, int axis) { select(x, axis, 0); }},
    {"squeeze", [](const Tensor& x, int axis) { squeeze(x, {axis}); }},
    {"transpose", [](const Tensor& x, int axis) { transpose(x, axis, 0); }},
    {"permute", [](const Tensor& x, int axis) { permute(x, {axis, 0}); }},
    {"cat", [](const Tensor& x, int axis) { cat({x, x}, axis); }},
    {"size", [](const Tensor& x, int axis) { x.size(axis); }},
};

TEST(Errors, AxesOutOfRangeAreNamed) {
  const Tensor x = counting({2, 3});
  for (const Axes& each : kAxes)
    for (int axis : {2, -3, 1000})
      EXPECT_TRUE(throws(Code::invalid,
                         {"[" + std::string(each.name) + "]", "axis " + std::to_string(axis), "rank 2", "-2 to 1"},
                         [&] { each.apply(x, axis); }))
          << each.name;
  EXPECT_TRUE(throws(Code::invalid, {"[sum]", "axis 1", "twice"}, [&] { sum(x, {1, -1}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[sum]", "axis 1", "rank 1"}, [] { sum(counting({}), {1}); }));
}

TEST(Errors, DtypesByName) {
  for (DType dtype : kEveryDType) EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  EXPECT_TRUE(
      throws(Code::invalid, {"'f8'", "f32, f64, f16, bf16, i32, i64, u8, i8, i16, bool"}, [] { dtype_from_name("f8"); }));
}

// The extents of an empty tensor may have any size. No computation may overflow, and no argument that compiles may crash.
TEST(Errors, AbsurdArguments) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_TRUE(
      throws(Code::invalid, {"the device is undefined", "default_device()"}, [] { zeros({1}, DType::f32, Device()); }));
  EXPECT_TRUE(throws(Code::invalid, {"DType 99 does not exist"}, [] { zeros({1}, static_cast<DType>(99)); }));
  EXPECT_TRUE(throws(Code::invalid, {"DType 99 does not exist"}, [] { cast(counting({2}), static_cast<DType>(99)); }));
  EXPECT_TRUE(throws(Code::invalid, {"DType 99 does not exist"}, [] {
    const float values[] = {1, 2};
    Tensor::from_host(values, 2, static_cast<DType>(99), {2}, default_device());
  }));
  EXPECT_TRUE(throws(Code::invalid, {"[arange]", "more numbers than a tensor can have"},
                     [] { arange(INT64_MIN, INT64_MAX, 1, DType::i64); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cat]", "2^63 - 1"}, [] { cat({zeros({0, kHuge}), zeros({0, kHuge})}, 1); }));
  const Tensor empty = zeros({0, kHuge, kHuge});
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(reshape(zeros({0}), {0, kHuge, kHuge, kHuge}).shape(), (Shape{0, kHuge, kHuge, kHuge}));
  EXPECT_EQ(transpose(empty, 0, 1).shape(), (Shape{kHuge, 0, kHuge}));
  EXPECT_EQ(arange(3, 0, -1, DType::i64).count(), 3);
}

TEST(Errors, BoolsFromTheHostAreZeroOrOne) {
  const unsigned char bytes[] = {0, 1, 7, 255};
  const Tensor x = Tensor::from_host(bytes, 4, DType::boolean, {4}, default_device());
  EXPECT_EQ(sum(x).item<int64_t>(), 3);
}

TEST(Errors, AnErrorLeavesTheOperandsAlone) {
  const Tensor x = counting({2, 2});
  const Tensor w = counting({2, 2}).requires_grad_();
  const Tensor y = x * w;
  EXPECT_TRUE(thrown([&] { x + counting({3}); }).any);
  EXPECT_TRUE(thrown([&] { matmul(x, counting({3})); }).any);
  sum(y).backward();
  EXPECT_TRUE(close(w.grad(), {2, 2}, {0, 1, 2, 3}));
}

}  // namespace
}  // namespace plugrad::test
