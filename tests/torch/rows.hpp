// Functions beside PyTorch's. write_golden.py calls PyTorch's and records operands, results and gradients; a row here calls
// the same function of ours.
#pragma once
#include <tests/core/expect.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plugrad::test {

using Inputs = std::vector<Tensor>;
using I = const Inputs&;

// What a function returns: one tensor or several.
struct Outputs {
  Outputs(Tensor only) : all{std::move(only)} {}
  Outputs(std::vector<Tensor> several) : all(std::move(several)) {}
  std::vector<Tensor> all;
};

struct TorchRow {
  std::string name;  // as in the file
  std::function<Outputs(I x)> apply;
  double tolerance = 1e-13;  // for f64
  double f32_tolerance = 1e-5;
};

// The rows of each file NAME.txt, which NAME.py defines.
std::vector<TorchRow> contraction_rows();
std::vector<TorchRow> sorting_rows();
std::vector<TorchRow> arrangement_rows();
std::vector<TorchRow> arithmetic_rows();
std::vector<TorchRow> network_rows();
std::vector<TorchRow> special_rows();
std::vector<TorchRow> spatial_rows();

}  // namespace plugrad::test
