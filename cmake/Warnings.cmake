# plugrad_warnings(target): sets the warnings for our own code.
option(PLUGRAD_WERROR "warnings are errors" ${PROJECT_IS_TOP_LEVEL})
function(plugrad_warnings target)
  set(is_cuda $<COMPILE_LANGUAGE:CUDA>)
  target_compile_options(${target} PRIVATE
    "$<$<NOT:${is_cuda}>:-Wall;-Wextra;-Wpedantic;$<$<BOOL:${PLUGRAD_WERROR}>:-Werror>>"
    "$<${is_cuda}:-Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas;$<$<BOOL:${PLUGRAD_WERROR}>:-Werror=all-warnings>>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # gcc 12 warns falsely about std::string + and inlined vectors
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
endfunction()
