// DESCENT_STEP, SGD_STEP and ADAM_STEP in f32: sdk/ops.md has the formulas.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "grid.glsl"
#include "exact.glsl"

REFERENCE(Element, float, 4)
#define INPUT(k) flushed(LOAD(Element, k, 4, OF_BITS))
#define OUTPUT(k, value) Element(ADDRESS(k, 4)).v = flushed(value)

// Operands p; g, rate.
void step_descent(uint i) {
  LOCATE(3)
  precise float p = INPUT(0), g = INPUT(1), rate = INPUT(2);
  OUTPUT(0, p - rate * g);
}

// Operands p, v; g, rate. Numbers: momentum, weight decay. flags: nesterov.
void step_sgd(uint i) {
  LOCATE(4)
  precise float p = INPUT(0), v = INPUT(1), step = INPUT(2), rate = INPUT(3);
  float momentum = grid.number[0];
  step += grid.number[1] * p;
  v = momentum * v + step;
  OUTPUT(1, v);
  OUTPUT(0, p - rate * (grid.flags != 0 ? step + momentum * v : v));
}

// Operands p, m, v; g, rate, c1, c2. Numbers: beta1, beta2, epsilon, weight decay, 1 - beta1, 1 - beta2. flags: decoupled.
void step_adam(uint i) {
  LOCATE(7)
  precise float p = INPUT(0), m = INPUT(1), v = INPUT(2), g = INPUT(3), rate = INPUT(4), c1 = INPUT(5), c2 = INPUT(6);
  if (grid.flags != 0) p -= rate * grid.number[3] * p;
  else g += grid.number[3] * p;
  m = grid.number[0] * m + grid.number[4] * g;
  v = grid.number[1] * v + grid.number[5] * g * g;
  OUTPUT(1, m);
  OUTPUT(2, v);
  OUTPUT(0, p - rate * exact_quotient(exact_quotient(m, c1), exact_root(exact_quotient(v, c2)) + grid.number[2]));
}

void main() {
  for (uint i = first_place(); i < grid.count; i += all_places()) {
    if (OP == OP_DESCENT_STEP) step_descent(i);
    else if (OP == OP_SGD_STEP) step_sgd(i);
    else step_adam(i);
  }
}
