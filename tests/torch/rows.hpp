// Compares functions with PyTorch's. write_golden.py calls PyTorch's functions and records operands, results and gradients;
// a row here calls plugrad's function of the same name.
#pragma once
#include <tests/core/expect.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::test {

using Inputs = std::vector<Tensor>;
using I = const Inputs&;

// The results of a function: one or several tensors.
struct Outputs {
  Outputs(Tensor only) : all{std::move(only)} {}
  Outputs(std::vector<Tensor> several) : all(std::move(several)) {}
  std::vector<Tensor> all;
};

struct TorchRow {
  std::string name;  // the name in the file
  std::function<Outputs(I x)> apply;
  double tolerance = 1e-13;  // the tolerance for f64
  double f32_tolerance = 1e-5;
};

// The rows for each file NAME.txt. NAME.py defines the rows of the file.
std::vector<TorchRow> contraction_rows();
std::vector<TorchRow> sorting_rows();
std::vector<TorchRow> arrangement_rows();
std::vector<TorchRow> arithmetic_rows();
std::vector<TorchRow> network_rows();
std::vector<TorchRow> special_rows();
std::vector<TorchRow> spatial_rows();

}  // namespace plugrad::test
