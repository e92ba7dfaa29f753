# The CUDA backend's sources, compiled by nvcc and by the emulator's build.
set(PLUGRAD_CUDA_FOLDER ${CMAKE_CURRENT_LIST_DIR})
set(PLUGRAD_CUDA_HOST_SOURCES
  backend.cpp blas.cpp blas_lt.cpp code_cache.cpp error.cpp library.cpp native.cpp nvrtc.cpp probe.cpp fusion_compiler.cpp
  fusion_shape.cpp fusion_source.cpp stream.cpp transfer.cpp)
set(PLUGRAD_CUDA_KERNEL_SOURCES
  architecture.cu arithmetic.cu attention.cu attention_backward.cu batch_norm.cu comparisons.cu convolution.cu
  convolution_plan.cu copies.cu cross_entropy.cu functions.cu indexing.cu matmul.cu pooling.cu product.cu quantized.cu
  fusion.cu
  fusion_plan.cu random.cu reduction_plan.cu reductions.cu row_norms.cu scans.cu selection.cu list.cu softmax.cu
  sorting.cu updates.cu)
list(TRANSFORM PLUGRAD_CUDA_HOST_SOURCES PREPEND ${PLUGRAD_CUDA_FOLDER}/)
list(TRANSFORM PLUGRAD_CUDA_KERNEL_SOURCES PREPEND ${PLUGRAD_CUDA_FOLDER}/)

# plugrad_cuda_headers(TARGET): compiles the headers of fusions, as text, into the target.
function(plugrad_cuda_headers target)
  set(root ${PLUGRAD_CUDA_FOLDER}/../..)
  file(GLOB headers ${root}/sdk/include/plugrad/sdk/*.hpp ${root}/sdk/include/plugrad/sdk/*.h
    ${root}/sdk/include/plugrad/sdk/*.def ${PLUGRAD_CUDA_FOLDER}/*.hpp)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/fusion_headers.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DOUTPUT=${output} -P ${PLUGRAD_CUDA_FOLDER}/fusion_headers.cmake
    DEPENDS ${headers} ${PLUGRAD_CUDA_FOLDER}/fusion_headers.cmake)
  target_sources(${target} PRIVATE ${output})
endfunction()
