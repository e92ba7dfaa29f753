// The kernel rows of loops.hpp, compiled: a plugin linked with the library plugrad::loops builds in seconds; loops.hpp would
// compile a thousand kernels again.
#pragma once
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {

// All rows of loops.hpp; they live as long as the process. [any]
Rows rows();

// Returns a backend's own rows, followed by all rows of loops.hpp: of several rows for a call, the first wins. [any]
inline std::vector<KernelRow> rows_after(Rows own) {
  std::vector<KernelRow> all(own.begin(), own.end());
  const Rows rest = rows();
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace plugrad::loops
#pragma GCC visibility pop
