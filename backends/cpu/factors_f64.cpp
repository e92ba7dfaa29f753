#include <backends/cpu/factors-inl.hpp>

template struct plugrad::cpu::Factors<double>;
