# plugrad_add_plugin(NAME sources...): adds a MODULE libplugrad-backend-NAME.so that exports only the entry symbol.
# plugrad_add_communicator(NAME sources...): the same for libplugrad-communicator-NAME.so.
# This tree uses them, and so do projects that use the installed SDK.
if(NOT DEFINED PLUGRAD_PLUGIN_MAP)
  set(PLUGRAD_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
endif()
if(NOT DEFINED PLUGRAD_COMMUNICATOR_MAP)
  set(PLUGRAD_COMMUNICATOR_MAP ${CMAKE_CURRENT_LIST_DIR}/communicator.map)
endif()
if(NOT DEFINED PLUGRAD_PLUGIN_OUTPUT)
  set(PLUGRAD_PLUGIN_OUTPUT ${CMAKE_BINARY_DIR})
endif()
function(plugrad_add_module target map)
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE plugrad::sdk)
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${PLUGRAD_PLUGIN_OUTPUT} INSTALL_RPATH ""
    LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE LINKER:--version-script=${map} LINKER:--exclude-libs,ALL)
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # clang links the sanitizers' runtime only into programs
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
endfunction()
function(plugrad_add_plugin name)
  plugrad_add_module(plugrad-backend-${name} ${PLUGRAD_PLUGIN_MAP} ${ARGN})
endfunction()
function(plugrad_add_communicator name)
  plugrad_add_module(plugrad-communicator-${name} ${PLUGRAD_COMMUNICATOR_MAP} ${ARGN})
endfunction()
