// Compares results and gradients of functions with PyTorch's: see write_golden.py.
#include <tests/torch/rows.hpp>

#include <fstream>
#include <map>
#include <sstream>

namespace plugrad::test {
namespace {

struct Array {
  DType dtype;
  Shape shape;
  std::vector<double> values;
};
struct Golden {
  std::vector<Array> in, out, grad;
};

Shape parsed_shape(const std::string& text) {
  Shape shape;
  std::istringstream in(text.substr(1, text.size() - 2));
  for (std::string extent; std::getline(in, extent, ',');) shape.push_back(std::stoll(extent));
  return shape;
}

Array parsed(std::istringstream& line, bool has_dtype) {
  std::string word;
  Array array{DType::f64, {}, {}};
  line >> word;
  if (has_dtype) {
    array.dtype = dtype_from_name(word);
    line >> word;
  }
  array.shape = parsed_shape(word);
  while (line >> word) array.values.push_back(std::stod(word));
  return array;
}

std::map<std::string, Golden> golden(const std::string& family) {
  std::ifstream file(std::string(PLUGRAD_TORCH_GOLDEN) + "/" + family + ".txt");
  std::map<std::string, Golden> rows;
  Golden* row = nullptr;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "row") row = &rows[text.substr(4)];
    else if (kind == "grad") row->grad.push_back(parsed(line, false));
    else (kind == "in" ? row->in : row->out).push_back(parsed(line, true));
  }
  return rows;
}

// The memory layout of a row's operands, and their floating dtype.
struct Variant {
  const char* name;
  bool strided;
  DType floating;
};
constexpr Variant kVariants[] = {{"dense", false, DType::f64}, {"strided", true, DType::f64}, {"f32", false, DType::f32}};

Tensor leaf_of(const Array& array, const Variant& variant) {
  const Tensor x = of(array.dtype == DType::f64 ? variant.floating : array.dtype, array.values, array.shape);
  return is_floating(x.dtype()) ? Tensor(x).requires_grad_() : x;
}
// The same elements, with a 0 after each in memory.
Tensor apart(const Tensor& x) { return x.rank() < 8 ? select(stack({x, zeros_like(x)}, -1), -1, 0) : x; }

std::vector<double> weights(int64_t count) {
  std::vector<double> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(0.5 + static_cast<double>(i * 5 % 7) / 8);
  return all;
}

Tensor loss_of(const std::vector<Tensor>& outputs) {
  Tensor loss;
  for (const Tensor& each : outputs) {
    if (!is_floating(each.dtype()) || !each.requires_grad()) continue;
    const Tensor term = sum(cast(each, DType::f64) * f64(weights(each.count()), each.shape()));
    loss = loss.defined() ? loss + term : term;
  }
  return loss;
}

void expect_gradients(const Inputs& leaves, const Tensor& loss, const Golden& expected, double tolerance) {
  if (expected.grad.empty()) return;
  Inputs floating;
  for (const Tensor& each : leaves)
    if (is_floating(each.dtype())) floating.push_back(each);
  ASSERT_EQ(floating.size(), expected.grad.size());
  Inputs gradients(floating.size());
  if (loss.defined()) gradients = grad({loss}, floating, {.allow_unused = true});
  for (size_t i = 0; i < floating.size(); ++i) {
    const Tensor given = gradients[i].defined() ? gradients[i] : zeros_like(floating[i]);
    EXPECT_TRUE(close(given, expected.grad[i].shape, expected.grad[i].values, tolerance)) << "gradient " << i;
  }
}

void expect_row(const TorchRow& row, const Golden& expected, const Variant& variant) {
  const double tolerance = variant.floating == DType::f64 ? row.tolerance : row.f32_tolerance;
  Inputs leaves, operands;
  for (const Array& each : expected.in) {
    leaves.push_back(leaf_of(each, variant));
    operands.push_back(variant.strided ? apart(leaves.back()) : leaves.back());
  }
  const std::vector<Tensor> outputs = row.apply(operands).all;
  ASSERT_EQ(outputs.size(), expected.out.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Array& wanted = expected.out[i];
    EXPECT_TRUE(close(outputs[i], wanted.shape, wanted.values, tolerance)) << "result " << i;
    const bool follows = wanted.dtype == DType::f64 && !leaves.empty() && variant.floating == DType::f32;
    EXPECT_TRUE(follows || outputs[i].dtype() == wanted.dtype) << "result " << i << " is " << outputs[i].dtype();
  }
  expect_gradients(leaves, loss_of(outputs), expected, tolerance);
}

void expect_family(const std::string& family, const std::vector<TorchRow>& rows) {
  auto expected = golden(family);
  ASSERT_FALSE(expected.empty());
  for (const TorchRow& row : rows) {
    ASSERT_TRUE(expected.contains(row.name)) << row.name;
    for (const Variant& variant : kVariants) {
      SCOPED_TRACE(std::string(row.name) + ", " + variant.name);
      EXPECT_NO_THROW(expect_row(row, expected[row.name], variant));
    }
    expected.erase(row.name);
  }
  for (const auto& [name, unused] : expected) ADD_FAILURE() << "no row calls '" << name << "'";
}

TEST(Torch, Contractions) { expect_family("contraction_rows", contraction_rows()); }
TEST(Torch, Sorting) { expect_family("sorting_rows", sorting_rows()); }
TEST(Torch, Arrangements) { expect_family("arrangement_rows", arrangement_rows()); }
TEST(Torch, Arithmetic) { expect_family("arithmetic_rows", arithmetic_rows()); }
TEST(Torch, Spatial) { expect_family("spatial_rows", spatial_rows()); }
TEST(Torch, Networks) { expect_family("network_rows", network_rows()); }
TEST(Torch, Special) { expect_family("special_rows", special_rows()); }

}  // namespace
}  // namespace plugrad::test
