// NVIDIA's libraries. The plugin opens a library when it first needs it, and never links it: the plugin also works without
// them.
#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace plugrad::cuda {

// The possible places of a library.
struct LibraryPlaces {
  const char* variable;                                 // of the environment; an absolute path there replaces the search
  const char* brought;                                  // this build's fixed file, or null
  std::initializer_list<const char*> names;             // for the system's loader, the preferred name first
  std::initializer_list<const char*> in_site_packages;  // of the wheels with the library
};

// Returns the files to try, the preferred file first.
std::vector<std::string> candidates(const LibraryPlaces& places);

template <class F> bool find_function(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace plugrad::cuda
