# plugrad_link_static(PROGRAM backends...): links the core and these backends into a program, instead of plugrad::core. The
# program then finds their devices without any file of plugrad. It can load plugins too: the core first tries them by
# plugrad/plugrad-probe beside the program, and warns if there is no such file, unless PLUGRAD_PROBE=off.
function(plugrad_link_static program)
  set(code "// Written by plugrad_link_static.\n#include <plugrad/runtime/runtime.hpp>\n")
  set(calls "")
  foreach(backend IN LISTS ARGN)
    if(NOT TARGET plugrad::backend-${backend}-static)
      message(FATAL_ERROR "plugrad_link_static(${program}): no backend '${backend}' is installed as an archive")
    endif()
    string(APPEND code "extern \"C\" const plugrad_backend* plugrad_${backend}_backend(const plugrad_host*);\n")
    string(APPEND calls "  plugrad::add_backend(plugrad_${backend}_backend(plugrad::host()));\n")
    target_link_libraries(${program} PRIVATE plugrad::backend-${backend}-static)
  endforeach()
  string(APPEND code "[[maybe_unused]] static const bool added = [] {\n${calls}  return true;\n}();\n")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${program}-backends.cpp CONTENT "${code}" @ONLY)
  target_sources(${program} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${program}-backends.cpp)
  target_link_libraries(${program} PRIVATE plugrad::core-static)
endfunction()
