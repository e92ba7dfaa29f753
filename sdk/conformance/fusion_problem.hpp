// Random fusions with the allowed contents of a device's fusions, in spaces of several forms.
#pragma once
#include <plugrad/sdk/fusion.hpp>
#include <plugrad/sdk/fusion_block.hpp>
#include <sdk/conformance/values.hpp>

#include <functional>
#include <optional>

namespace plugrad::conformance {

struct FusionProblem {
  Shape space;
  FusionParts parts;
  std::vector<Array> inputs;       // of the shapes of their values; immediates have one element
  std::vector<bool> is_immediate;  // by input

  // The space with extent 1 along axes.
  Shape shape_of(unsigned axes) const;
  Shape shape_of_value(size_t value) const { return shape_of(parts.values[value].axes); }
};

// Whether a device has a kernel for an op, on dense operands of this key dtype.
using HasKernel = std::function<bool(uint32_t opcode, uint8_t dtype)>;

// dtype: of most values.
FusionProblem random_fusion(const plugrad_fusions& offered, uint8_t dtype, const HasKernel& has, Random& random);
// "RELU MUL SUM of f32 in (40, 64): ..."
std::string text_of(const FusionProblem& problem);

}  // namespace plugrad::conformance
