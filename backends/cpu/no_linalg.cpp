#include <backends/cpu/linalg.hpp>

const plugrad_linalg* plugrad::cpu::linear_algebra() { return nullptr; }
