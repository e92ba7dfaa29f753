#include <backends/cpu/blas.hpp>

#include <cblas.h>

#include <string_view>

namespace plugrad::cpu {
namespace {

CBLAS_TRANSPOSE mode(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void blas_multiply(int64_t m, int64_t n, int64_t k, BlasMatrix<float> a, BlasMatrix<float> b, float* c, int64_t leading,
                   bool accumulate) {
  cblas_sgemm(CblasRowMajor, mode(a.transposed), mode(b.transposed), int(m), int(n), int(k), 1, a.data, int(a.leading),
              b.data, int(b.leading), accumulate ? 1 : 0, c, int(leading));
}

void blas_multiply(int64_t m, int64_t n, int64_t k, BlasMatrix<double> a, BlasMatrix<double> b, double* c, int64_t leading,
                   bool accumulate) {
  cblas_dgemm(CblasRowMajor, mode(a.transposed), mode(b.transposed), int(m), int(n), int(k), 1, a.data, int(a.leading),
              b.data, int(b.leading), accumulate ? 1 : 0, c, int(leading));
}

}  // namespace plugrad::cpu

// OpenBLAS reads its settings by getenv in a constructor. The linker sends these calls here (--wrap=getenv): so it starts no
// threads and takes the right kernels on processors it has not met, while the process's environment stays as it is.
extern "C" char* __real_getenv(const char* name);
extern "C" char* __wrap_getenv(const char* name);

extern "C" char* __wrap_getenv(const char* name) {
  static char one[] = "1";
  const std::string_view asked = name;
  if (asked == "OPENBLAS_NUM_THREADS" || asked == "GOTO_NUM_THREADS" || asked == "OMP_NUM_THREADS") return one;
  char* given = __real_getenv(name);
  if (given || asked != "OPENBLAS_CORETYPE") return given;
#if defined(__x86_64__)
  static char avx512[] = "SkylakeX", avx2[] = "Haswell";
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#endif
  return nullptr;
}
