// SOFTMAX, LOG_SOFTMAX, CROSS_ENTROPY and their gradients, in f32. Operands as in ops.def, outputs first.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact.glsl"
#include "functions.glsl"
#include "lines.glsl"

float largest(uint operand) {
  float share = -INFINITE;
  for (uint i = me(); i < p.extent; i += GROUP) share = joined(share, at(operand, i), false);
  return largest_of_group(share);
}

float sum_of_exponentials(uint operand, float largest) {
  precise float share = 0.0;
  for (uint i = me(); i < p.extent; i += GROUP) share += exponential(at(operand, i) - largest);
  return sum_of_group(share);
}

void softmax() {  // out, x
  float m = largest(1), sum = sum_of_exponentials(1, m), log_sum = logarithm(sum);
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float x = at(1, i) - m;
    put(0, i, OP == OP_SOFTMAX ? exponential(x) / sum : x - log_sum);
  }
}

void softmax_backward() {  // out, grad, y
  bool is_log = OP == OP_LOG_SOFTMAX_BACKWARD;
  precise float share = 0.0;
  for (uint i = me(); i < p.extent; i += GROUP) share += is_log ? at(1, i) : at(1, i) * at(2, i);
  float sum = sum_of_group(share);
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float y = at(2, i), grad = at(1, i);
    put(0, i, is_log ? grad - exponential(y) * sum : y * (grad - sum));
  }
}

// Returns the class of a row. Reports a failure and returns -1 for a class out of range.
int64_t class_of(uint64_t address) {
  int64_t target = Index(address).v;
  bool is_valid = target >= 0 && target < int64_t(p.extent);
  if (!is_valid && me() == 0) report_failure(p.failed, p.ordinal);
  return is_valid ? target : int64_t(-1);
}

void cross_entropy(uint line) {  // loss, lse, x, target
  int64_t target = class_of(p.base[3] + uint64_t(start_of(3, line) * 8));
  float m = largest(2), log_sum = logarithm(sum_of_exponentials(2, m));
  if (me() != 0) return;
  precise float lse = m + log_sum;
  precise float loss = (m - at(2, uint(max(target, int64_t(0))))) + log_sum;
  put(1, 0, lse);
  put(0, 0, loss);
}

void cross_entropy_backward(uint line) {  // out, grad, x, target, lse
  int64_t target = class_of(p.base[3] + uint64_t(start_of(3, line) * 8));
  float grad = at(1, 0), lse = at(4, 0);
  for (uint i = me(); i < p.extent; i += GROUP) {
    precise float share = exponential(at(2, i) - lse) - (int64_t(i) == target ? 1.0 : 0.0);
    put(0, i, grad * share);
  }
}

void main() {
  for (uint line = gl_WorkGroupID.x; line < p.lines; line += gl_NumWorkGroups.x) {
    enter(line);
    switch (OP) {
      case OP_SOFTMAX:
      case OP_LOG_SOFTMAX: softmax(); break;
      case OP_SOFTMAX_BACKWARD:
      case OP_LOG_SOFTMAX_BACKWARD: softmax_backward(); break;
      case OP_CROSS_ENTROPY: cross_entropy(line); break;
      default: cross_entropy_backward(line); break;
    }
  }
}
