// NVRTC, CUDA's compiler of C++ within the process, compiles fusions (fusion.hpp). It is opened when the first fusion is
// compiled, and never linked; without it calls run singly.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace plugrad::cuda {

// A header, and the name by which sources include it.
struct Header {
  const char* name;
  const char* text;
};

class Nvrtc {
 public:
  // Returns the library, or null if none is found; `why` then lists the places searched and the remedy.
  static std::unique_ptr<const Nvrtc> open(std::string& why);

  // "13.0"
  const std::string& version() const { return version_; }
  // Returns code for devices of an architecture, "sm_90", or an empty vector with the compiler's messages in `why`. [any]
  std::vector<char> compile(const std::string& source, const std::string& architecture, std::string& why) const;

 private:
  using Result = int;  // nvrtcResult; 0: success
  using Handle = void*;
  class Unit;

  std::string version_;
  Result (*create_)(Handle*, const char* source, const char* name, int headers, const char* const* texts,
                    const char* const* names) = nullptr;
  Result (*destroy_)(Handle*) = nullptr;
  Result (*compile_)(Handle, int options, const char* const* option) = nullptr;
  Result (*log_size_)(Handle, size_t*) = nullptr;
  Result (*log_)(Handle, char*) = nullptr;
  Result (*code_size_)(Handle, size_t*) = nullptr;
  Result (*code_)(Handle, char*) = nullptr;
};

// Returns the headers of the plugin and the SDK that sources include, directly or indirectly. fusion_headers.cmake writes
// them.
const std::vector<Header>& fusion_headers();

}  // namespace plugrad::cuda
