# The CUDA backend's sources, compiled by nvcc and by the emulator's build.
set(PLUGRAD_CUDA_FOLDER ${CMAKE_CURRENT_LIST_DIR})
set(PLUGRAD_CUDA_HOST_SOURCES backend.cpp blas.cpp error.cpp library.cpp native.cpp probe.cpp stream.cpp transfer.cpp)
set(PLUGRAD_CUDA_KERNEL_SOURCES
  architecture.cu arithmetic.cu attention.cu attention_backward.cu batch_norm.cu comparisons.cu convolution.cu
  convolution_plan.cu copies.cu cross_entropy.cu functions.cu indexing.cu matmul.cu pooling.cu product.cu random.cu
  reduction_plan.cu reductions.cu row_norms.cu scans.cu selection.cu sequence.cu softmax.cu sorting.cu
  updates.cu)
list(TRANSFORM PLUGRAD_CUDA_HOST_SOURCES PREPEND ${PLUGRAD_CUDA_FOLDER}/)
list(TRANSFORM PLUGRAD_CUDA_KERNEL_SOURCES PREPEND ${PLUGRAD_CUDA_FOLDER}/)
