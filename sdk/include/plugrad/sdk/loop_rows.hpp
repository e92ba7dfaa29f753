// The kernel rows of loops.hpp, compiled: a plugin that links the library plugrad::loops builds in seconds, where loops.hpp
// would compile a thousand kernels again.
#pragma once
#include <plugrad/sdk/backend.hpp>

#pragma GCC visibility push(hidden)
namespace plugrad::loops {

// All rows of loops.hpp; they live as long as the process. [any]
Rows rows();

// A backend's own rows, followed by all of loops.hpp: of several rows that serve a call, the first wins. [any]
inline std::vector<KernelRow> rows_after(Rows own) {
  std::vector<KernelRow> all(own.begin(), own.end());
  const Rows rest = rows();
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace plugrad::loops
#pragma GCC visibility pop
