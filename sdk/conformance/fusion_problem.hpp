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
  // Of a fusion with a head: which of its inputs are transposed in memory, and the shapes of its results.
  std::vector<bool> is_turned;
  std::vector<Shape> head_results;

  size_t head_inputs() const { return is_turned.size(); }
  bool is_beside_space(size_t value) const { return value > parts.inputs && value < parts.inputs + head_results.size(); }
  // The space with extent 1 along axes.
  Shape shape_of(unsigned axes) const;
  Shape shape_of_value(size_t value) const {
    return is_beside_space(value) ? head_results[value - parts.inputs] : shape_of(parts.values[value].axes);
  }
  // Keeps the first `lines` lines.
  void cut(size_t lines);
};

// Whether a device has a kernel for an op, on dense operands of this key dtype.
using HasKernel = std::function<bool(uint32_t opcode, uint8_t dtype)>;

// dtype: of most values.
FusionProblem random_fusion(const plugrad_fusions& offered, uint8_t dtype, const HasKernel& has, Random& random);
// The same, of fusions that begin with a head; nothing if the device has no kernel for the head that was drawn.
std::optional<FusionProblem> random_headed_fusion(const plugrad_fusions& offered, uint8_t dtype, const HasKernel& has,
                                                  Random& random);
// "RELU MUL SUM of f32 in (40, 64): ..."
std::string text_of(const FusionProblem& problem);

}  // namespace plugrad::conformance
