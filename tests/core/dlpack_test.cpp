// Memory shared with other libraries, through the DLPack structs alone.
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/tensor/dlpack.hpp>

#include <gtest/gtest.h>
#include <array>
#include <string>
#include <thread>
#include <vector>

namespace plugrad {
namespace {

// The device can use host memory as its own.
class DLPack : public testing::Test {
 protected:
  void SetUp() override {
    if (default_device().dlpack_type() != 1) GTEST_SKIP() << "memory of the host is none of this device's";
  }
};

// Another library's array, which counts how often it was released.
struct Foreign {
  explicit Foreign(std::vector<int64_t> extents, std::vector<int64_t> steps = {})
      : shape(std::move(extents)), strides(std::move(steps)) {
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i);
    managed.array = {elements.data(),
                     {1, 0},
                     static_cast<int32_t>(shape.size()),
                     {2, 64, 1},
                     shape.data(),
                     strides.empty() ? nullptr : strides.data(),
                     0};
    managed.context = this;
    managed.deleter = [](dlpack::Managed* self) { ++static_cast<Foreign*>(self->context)->let_go; };
    versioned = {{1, 1},
                 this,
                 [](dlpack::ManagedVersioned* self) { ++static_cast<Foreign*>(self->context)->let_go; },
                 0,
                 managed.array};
  }
  alignas(64) std::array<double, 24> elements{};
  std::vector<int64_t> shape, strides;
  dlpack::Managed managed{};
  dlpack::ManagedVersioned versioned{};
  int let_go = 0;
};

TEST_F(DLPack, ImportsWithoutACopy) {
  Foreign array({2, 3});
  {
    const Tensor x = dlpack::import_managed(&array.managed);
    EXPECT_EQ(x.device(), default_device());
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    array.elements[5] = 50;
    EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0, 1, 2, 3, 4, 50}));
    const Tensor row = select(x, 0, 1);
    EXPECT_EQ(array.let_go, 0);
    EXPECT_EQ(sum(row * row).item<double>(), 9 + 16 + 2500);
    Tensor written = x;
    written.fill_(7);
    EXPECT_EQ(array.elements[4], 7);
  }
  EXPECT_EQ(array.let_go, 1);
}

TEST_F(DLPack, ImportsStridesOfAnySign) {
  Foreign array({2, 3}, {-1, 4});
  array.versioned.array.byte_offset = 8 * sizeof(double);
  const Tensor x = dlpack::import_versioned(&array.versioned);
  EXPECT_EQ(x.strides(), (Shape{-1, 4}));
  EXPECT_EQ((x + 0).to_vector<double>(), (std::vector<double>{8, 12, 16, 7, 11, 15}));
}

TEST_F(DLPack, CopiesWhatMayOnlyBeRead) {
  Foreign array({4});
  array.versioned.flags = dlpack::kReadOnly;
  Tensor x = dlpack::import_versioned(&array.versioned);
  EXPECT_EQ(array.let_go, 1);
  x.fill_(9);
  EXPECT_EQ(array.elements[1], 1);
}

TEST_F(DLPack, LetsEmptyArraysGoAtOnce) {
  Foreign array({0, 3});
  EXPECT_EQ(dlpack::import_managed(&array.managed).count(), 0);
  EXPECT_EQ(array.let_go, 1);
}

TEST_F(DLPack, RefusesWhatItCannotHoldAndLeavesItToItsOwner) {
  const auto refused = [](auto change) {
    Foreign array({4});
    change(array.versioned);
    EXPECT_THROW(dlpack::import_versioned(&array.versioned), Error);
    EXPECT_EQ(array.let_go, 0);
  };
  refused([](dlpack::ManagedVersioned& m) { m.version.major = 2; });
  refused([](dlpack::ManagedVersioned& m) { m.array.dtype = {1, 16, 1}; });
  refused([](dlpack::ManagedVersioned& m) { m.array.dtype.lanes = 2; });
  refused([](dlpack::ManagedVersioned& m) { m.array.ndim = 9; });
  refused([](dlpack::ManagedVersioned& m) { m.array.byte_offset = 3; });
  refused([](dlpack::ManagedVersioned& m) { m.array.device = {8, 5}; });
  refused([](dlpack::ManagedVersioned& m) { m.array.data = nullptr; });
  refused([](dlpack::ManagedVersioned& m) { m.array.data = nullptr, m.flags = dlpack::kReadOnly; });
  refused([](dlpack::ManagedVersioned& m) { m.array.shape = nullptr; });
  static int64_t beyond = INT64_MAX / 4;
  refused([](dlpack::ManagedVersioned& m) { m.array.strides = &beyond; });
}

TEST_F(DLPack, TheLastHandleMayDieOnAnyThread) {
  Foreign array({4});
  Tensor x = dlpack::import_managed(&array.managed);
  std::thread([held = std::move(x)]() mutable { held = {}; }).join();
  EXPECT_EQ(array.let_go, 1);
}

TEST_F(DLPack, ExportsWithoutACopyAndKeepsTheTensorAlive) {
  Tensor x = arange(0, 6, 1, DType::f64);
  Tensor part = transpose(reshape(x, {2, 3}));
  dlpack::ManagedVersioned* managed = dlpack::export_versioned(part);
  x = part = {};
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->flags, 0u);
  EXPECT_EQ(managed->array.ndim, 2);
  EXPECT_EQ(managed->array.strides[1], 3);
  EXPECT_EQ(static_cast<double*>(managed->array.data)[managed->array.strides[1] * 1 + managed->array.strides[0] * 2], 5);
  const Tensor again = dlpack::import_versioned(managed);
  EXPECT_EQ(again.to_vector<double>(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST_F(DLPack, SaysReadOnlyWhereGradientsAreWanted) {
  Tensor x = ones({2});
  x.requires_grad_();
  dlpack::ManagedVersioned* managed = dlpack::export_versioned(x);
  EXPECT_EQ(managed->flags, dlpack::kReadOnly);
  managed->deleter(managed);
}

TEST(DLPackPlaces, AreNoneForDevicesWithoutAType) {
  if (default_device().dlpack_type()) GTEST_SKIP() << "the device has a DLPack type";
  EXPECT_THROW(dlpack::export_managed(ones({2})), Error);
}

TEST(DLPackPlaces, NameADeviceThatNobodyBrings) {
  try {
    dlpack::device_of({8, 5});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("type 8, index 5"), std::string::npos);
  }
}

}  // namespace
}  // namespace plugrad
