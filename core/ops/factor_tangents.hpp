// The tangents of factors, for forward mode. No gradient is recorded.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <span>
#include <vector>

namespace plugrad::factor_tangents {

using All = std::span<const Tensor>;
// The tangents of the outputs, from the outputs, the inputs, and the inputs' tangents, of which an undefined one is zero.
// Formulas: Giles, An extended collection of matrix derivative results for forward and reverse mode automatic
// differentiation (2008); for QR, Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2010).
std::vector<Tensor> lu(All outputs, All inputs, All tangents);
std::vector<Tensor> cholesky(All outputs, All inputs, All tangents);
std::vector<Tensor> qr(All outputs, All inputs, All tangents);
std::vector<Tensor> eigh(All outputs, All inputs, All tangents);
std::vector<Tensor> svd(All outputs, All inputs, All tangents);

}  // namespace plugrad::factor_tangents
