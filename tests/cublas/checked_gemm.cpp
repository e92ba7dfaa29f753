#include <tests/cublas/checked_gemm.hpp>

#include <plugrad/sdk/halves.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

namespace plugrad::cuda::checking {

std::string text(const Gemm& g, const std::string& what) {
  return std::string(g.function) + " (" + std::to_string(g.m) + " x " + std::to_string(g.k) + " times " +
         std::to_string(g.k) + " x " + std::to_string(g.n) + ", batches " + std::to_string(g.batches) + "): " + what;
}

size_t size_of(int type) {
  if (type == cublas::kFloat64) return 8;
  if (type == cublas::kFloat32) return 4;
  return type == cublas::kBFloat16 || type == cublas::kFloat16 ? 2 : 0;
}

namespace {

std::optional<std::string> why_types(const Gemm& g) {
  if (!size_of(g.type_a) || g.type_a != g.type_b || g.type_a != g.type_c) return "the types differ, or are none of ours";
  const bool fits = g.type_a == cublas::kFloat64   ? g.compute == cublas::kCompute64
                    : g.type_a == cublas::kFloat32 ? g.compute == cublas::kCompute32 || g.compute == cublas::kCompute32Tf32
                                                   : g.compute == cublas::kCompute32;
  if (size_of(g.type_a) == 2 && !(g.context.math_mode & cublas::kRoundOnce)) return "the math mode allows sums of halves";
  if (!fits) return "compute type " + std::to_string(g.compute) + " is not for data type " + std::to_string(g.type_a);
  return {};
}

std::optional<std::string> why_not(const Gemm& g) {
  if (!g.context.has_workspace) return "the handle has no workspace";
  if (g.m < 1 || g.n < 1 || g.k < 0 || g.batches < 1) return "a size is out of range";
  for (const int transpose : {g.transpose_a, g.transpose_b})
    if (transpose != cublas::kNoTranspose && transpose != cublas::kTranspose) return "an unknown transpose";
  if (g.lda < std::max(1, g.transpose_a ? g.k : g.m)) return "lda is less than the rows of a as it is stored";
  if (g.ldb < std::max(1, g.transpose_b ? g.n : g.k)) return "ldb is less than the rows of b as it is stored";
  if (g.ldc < g.m) return "ldc is less than the rows of c";
  if (g.algorithm != cublas::kDefaultAlgorithm) return "an unknown algorithm";
  return why_types(g);
}

size_t bytes_of(int rows, int columns, int leading, int type) {
  if (!rows || !columns) return 0;
  return (static_cast<size_t>(columns - 1) * static_cast<size_t>(leading) + static_cast<size_t>(rows)) * size_of(type);
}

// Fails unless the matrix is aligned and inside one allocation.
void demand_matrix(const Gemm& g, const char* name, const void* base, size_t bytes) {
  const simt::Library& library = simt::library_of(g.context.stream);
  if (reinterpret_cast<uintptr_t>(base) % size_of(g.type_a))
    library.fail(text(g, std::string(name) + " is not aligned for its type"));
  if (!bytes || library.covers(g.context.stream, base, bytes)) return;
  const char* const end = static_cast<const char*>(base) + bytes - 1;
  const bool is_start = !library.covers(g.context.stream, base, 1);
  library.fail(text(g, std::string(name) + " touches " +
                           library.describe(g.context.stream, is_start ? static_cast<const char*>(base) : end)));
}

// Rounds to ten bits of mantissa, as tensor cores round their inputs; the largest numbers stay finite.
double tf32(double x) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  const auto rounded = std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu);
  return std::isfinite(rounded) ? static_cast<double>(rounded) : x;
}

double exact(const char* base, size_t i, const Gemm& g) {
  if (g.type_a == cublas::kFloat64) return reinterpret_cast<const double*>(base)[i];
  if (g.type_a == cublas::kBFloat16)
    return static_cast<double>(static_cast<float>(reinterpret_cast<const BFloat16*>(base)[i]));
  if (g.type_a == cublas::kFloat16)
    return static_cast<double>(static_cast<float>(reinterpret_cast<const Float16*>(base)[i]));
  return static_cast<double>(reinterpret_cast<const float*>(base)[i]);
}
// An element as the computation takes it.
double load(const char* base, size_t i, const Gemm& g) {
  const double x = exact(base, i, g);
  return g.compute == cublas::kCompute32Tf32 && std::isfinite(x) ? tf32(x) : x;
}

template <class T> void store(T& c, const Product& p, double value) {
  const double old = p.beta == 0 ? 0 : p.beta * static_cast<double>(c);  // beta 0: c is not read
  c = static_cast<T>(value + old);
}
// Halves are rounded from the sum in f32.
template <class T> void store_half(T& c, const Product& p, double value) {
  float wide = p.beta == 0 ? 0 : static_cast<float>(c);
  store(wide, p, value);
  c = static_cast<T>(wide);
}
// c = value + beta c
void store(char* base, size_t i, const Product& p, double value) {
  switch (p.call.type_c) {
    case cublas::kFloat64: return store(reinterpret_cast<double*>(base)[i], p, value);
    case cublas::kFloat32: return store(reinterpret_cast<float*>(base)[i], p, value);
    case cublas::kBFloat16: return store_half(reinterpret_cast<BFloat16*>(base)[i], p, value);
    default: return store_half(reinterpret_cast<Float16*>(base)[i], p, value);
  }
}

// Copies op(a) row by row or op(b) column by column, so that the loops below are simple.
std::vector<double> lines(const Gemm& g, const char* base, int count, int leading, bool is_contiguous) {
  std::vector<double> all(static_cast<size_t>(count) * static_cast<size_t>(g.k));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    for (size_t l = 0; l < static_cast<size_t>(g.k); ++l) {
      const size_t step = static_cast<size_t>(leading);
      all[i * static_cast<size_t>(g.k) + l] = load(base, is_contiguous ? i * step + l : l * step + i, g);
    }
  return all;
}

}  // namespace

void multiply(const Product& p, const char* a, const char* b, char* c) {
  const Gemm& g = p.call;
  demand_matrix(g, "a", a, g.transpose_a ? bytes_of(g.k, g.m, g.lda, g.type_a) : bytes_of(g.m, g.k, g.lda, g.type_a));
  demand_matrix(g, "b", b, g.transpose_b ? bytes_of(g.n, g.k, g.ldb, g.type_b) : bytes_of(g.k, g.n, g.ldb, g.type_b));
  demand_matrix(g, "c", c, bytes_of(g.m, g.n, g.ldc, g.type_c));
  if (g.bias) demand_matrix(g, "the bias", g.bias, bytes_of(g.m, 1, g.m, g.type_c));
  const std::vector<double> left = lines(g, a, g.m, g.lda, g.transpose_a), right = lines(g, b, g.n, g.ldb, !g.transpose_b);
  const size_t k = static_cast<size_t>(g.k);
  for (size_t j = 0; j < static_cast<size_t>(g.n); ++j)
    for (size_t i = 0; i < static_cast<size_t>(g.m); ++i) {
      double sum = 0;
      for (size_t l = 0; l < k; ++l) sum += left[i * k + l] * right[j * k + l];
      const double bias = g.bias ? exact(static_cast<const char*>(g.bias), i, g) : 0;
      store(c, i + j * static_cast<size_t>(g.ldc), p, p.alpha * sum + bias);
    }
}

cublas::Status submit(const Gemm& g, std::function<void(const Product&)> work) {
  if (!g.context.stream) return 1;  // not initialised
  const simt::Library& library = simt::library_of(g.context.stream);
  const std::optional<std::string> why = why_not(g);
  if (why) {
    library.submit(g.context.stream, [&library, message = text(g, *why)] { library.fail(message); });
    return cublas::kSuccess;
  }
  const Product product{g, g.factor(g.alpha), g.factor(g.beta)};
  library.submit(g.context.stream, [product, work] { work(product); });
  return cublas::kSuccess;
}

}  // namespace plugrad::cuda::checking
