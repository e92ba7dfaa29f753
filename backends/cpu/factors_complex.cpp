#include <backends/cpu/factors-inl.hpp>

#include <complex>

#define PLUGRAD_FACTORS(T)                                                                                                 \
  template int32_t plugrad::cpu::Factors<T>::lu(const plugrad_matrices&, const plugrad_matrices&, const plugrad_matrices&, \
                                                int64_t);                                                                  \
  template void plugrad::cpu::Factors<T>::solve_triangular(const plugrad_matrices&, const plugrad_matrices&, uint32_t,     \
                                                           int64_t);                                                       \
  template int32_t plugrad::cpu::Factors<T>::cholesky(const plugrad_matrices&, const plugrad_matrices&, int64_t);

PLUGRAD_FACTORS(std::complex<float>)
PLUGRAD_FACTORS(std::complex<double>)
