// NVIDIA's libraries that the plugin opens when it first needs them, and never links: it also works without them.
#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace plugrad::cuda {

// Where a library may be.
struct LibraryPlaces {
  const char* variable;                                 // of the environment; an absolute path there replaces the search
  const char* brought;                                  // the file that this build opens, or null
  std::initializer_list<const char*> names;             // for the system's loader, the preferred one first
  std::initializer_list<const char*> in_site_packages;  // of the wheels that bring it
};

// The files to try, the preferred one first.
std::vector<std::string> candidates(const LibraryPlaces& places);

template <class F> bool find_function(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace plugrad::cuda
