// LAYER_NORM and RMS_NORM, and the gradient of their x, in f32; rows of x are the lines. Operands: out, x, weight, bias, mean,
// rstd, and for the gradient out, grad, x, weight, mean, rstd. RMS_NORM has no bias and no mean. The gradients of weight and
// bias are sums over rows: in MODE 1 an invocation computes a column of them.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact.glsl"
#include "lines.glsl"

bool is_rms() { return OP == OP_RMS_NORM || OP == OP_RMS_NORM_BACKWARD; }
bool is_backward() { return OP == OP_LAYER_NORM_BACKWARD || OP == OP_RMS_NORM_BACKWARD; }

// Returns the mean of a row, which is 0 for RMS_NORM, and 1 / sqrt(variance + epsilon).
vec2 moments(uint operand) {
  float n = float(p.extent);
  precise float share = 0.0, mean = 0.0;
  if (!is_rms()) {
    for (uint i = me(); i < p.extent; i += GROUP) share += at(operand, i);
    mean = sum_of_group(share) / n;
    share = 0.0;
  }
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float x = at(operand, i) - mean;
    share += x * x;
  }
  precise float variance = sum_of_group(share) / n + p.epsilon;
  return vec2(mean, exact_quotient(1.0, exact_root(variance)));
}

void normalise() {  // out, x, weight, bias, mean, rstd
  vec2 m = moments(1);
  if (me() == 0) {
    if (!is_rms()) put(4, 0, m.x);
    put(5, 0, m.y);
  }
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float y = (at(1, i) - m.x) * m.y * at(2, i);
    put(0, i, is_rms() ? y : y + at(3, i));
  }
}

void backward() {  // out, grad, x, weight, mean, rstd
  vec2 m = vec2(is_rms() ? 0.0 : at(4, 0), at(5, 0));
  precise float share = 0.0, product = 0.0;
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float g = at(1, i) * at(3, i), v = (at(2, i) - m.x) * m.y;
    share += g;
    product += g * v;
  }
  float n = float(p.extent), mean_g = is_rms() ? 0.0 : sum_of_group(share) / n, mean_gv = sum_of_group(product) / n;
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float g = at(1, i) * at(3, i), v = (at(2, i) - m.x) * m.y;
    put(0, i, m.y * (g - mean_g - v * mean_gv));
  }
}

// Operands: the gradient of weight, the gradient of bias (base 0: none), x, grad, mean and rstd. A column is a line here, with
// an element for each row. It is summed in runs of 64, so that errors grow slowly.
float of_row(uint operand, uint r) { return Element(p.base[operand] + uint64_t(int64_t(r) * p.along[operand] * 4)).v; }
void column(uint c) {
  precise float weight = 0.0, bias = 0.0;
  uint64_t x = p.base[2] + uint64_t(int64_t(c) * p.stride[2][0] * 4), grad = p.base[3] + uint64_t(int64_t(c) * p.stride[3][0] * 4);
  for (uint first = 0; first < p.extent; first += 64) {
    precise float some_weight = 0.0, some_bias = 0.0;
    for (uint r = first; r < min(first + 64, p.extent); ++r) {
      precise float g = flushed(Element(grad + uint64_t(int64_t(r) * p.along[3] * 4)).v);
      precise float v = flushed(Element(x + uint64_t(int64_t(r) * p.along[2] * 4)).v);
      v = (v - (is_rms() ? 0.0 : of_row(4, r))) * of_row(5, r);
      some_weight += g * v;
      some_bias += g;
    }
    weight += some_weight;
    bias += some_bias;
  }
  Element(p.base[0] + uint64_t(int64_t(c) * p.stride[0][0] * 4)).v = flushed(weight);
  if (p.base[1] != 0) Element(p.base[1] + uint64_t(int64_t(c) * p.stride[1][0] * 4)).v = flushed(bias);
}

void main() {
  if (MODE == 1) {
    for (uint c = gl_GlobalInvocationID.x; c < p.lines; c += gl_NumWorkGroups.x * GROUP) column(c);
    return;
  }
  for (uint line = gl_WorkGroupID.x; line < p.lines; line += gl_NumWorkGroups.x) {
    enter(line);
    if (is_backward()) backward();
    else normalise();
  }
}
