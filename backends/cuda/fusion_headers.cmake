# Writes OUTPUT: the headers of fusions as text. cmake -DROOT=... -DOUTPUT=... -P fusion_headers.cmake
set(code "// Written by fusion_headers.cmake.
#include <backends/cuda/nvrtc.hpp>

namespace plugrad::cuda {
namespace {
")
set(rows "")
foreach(name
    plugrad/sdk/abi.h plugrad/sdk/ops.def plugrad/sdk/dtypes.def plugrad/sdk/dtypes.hpp plugrad/sdk/halves.hpp
    plugrad/sdk/functions.hpp plugrad/sdk/divider.hpp backends/cuda/accumulator.hpp backends/cuda/functions.hpp
    backends/cuda/map.hpp backends/cuda/fusion_reduction.hpp backends/cuda/reducers.hpp backends/cuda/segments.hpp
    backends/cuda/team.hpp backends/cuda/update_functions.hpp backends/cuda/nvrtc_std.hpp)
  string(MAKE_C_IDENTIFIER ${name} identifier)
  set(file ${ROOT}/${name})
  if(name MATCHES "^plugrad/sdk/")
    set(file ${ROOT}/sdk/include/${name})
  endif()
  file(READ ${file} text)
  string(APPEND code "constexpr char k_${identifier}[] = R\"header(${text})header\";\n")
  string(APPEND rows "    {\"${name}\", k_${identifier}},\n")
endforeach()
# The standard headers that these include.
foreach(name assert.h stddef.h stdint.h algorithm array bit cmath cstdint cstring limits type_traits utility cuda_runtime.h)
  string(APPEND rows "    {\"${name}\", \"#include <backends/cuda/nvrtc_std.hpp>\\n\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${code}
}  // namespace

const std::vector<Header>& fusion_headers() {
  static const std::vector<Header> headers = {
${rows}  };
  return headers;
}

}  // namespace plugrad::cuda
")
