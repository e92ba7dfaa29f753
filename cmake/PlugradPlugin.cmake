# plugrad_add_plugin(NAME sources...): adds a MODULE libplugrad-backend-NAME.so that exports only the entry symbol. This tree
# uses it, and so do projects that use the installed SDK.
if(NOT DEFINED PLUGRAD_PLUGIN_MAP)
  set(PLUGRAD_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
endif()
if(NOT DEFINED PLUGRAD_PLUGIN_OUTPUT)
  set(PLUGRAD_PLUGIN_OUTPUT ${CMAKE_BINARY_DIR})
endif()
function(plugrad_add_plugin name)
  add_library(plugrad-backend-${name} MODULE ${ARGN})
  target_link_libraries(plugrad-backend-${name} PRIVATE plugrad::sdk)
  set_target_properties(plugrad-backend-${name} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${PLUGRAD_PLUGIN_OUTPUT} INSTALL_RPATH ""
    LINK_DEPENDS ${PLUGRAD_PLUGIN_MAP})
  target_link_options(plugrad-backend-${name} PRIVATE
    LINKER:--version-script=${PLUGRAD_PLUGIN_MAP} LINKER:--exclude-libs,ALL)
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # clang links the sanitizers' runtime only into programs
    target_link_options(plugrad-backend-${name} PRIVATE LINKER:-z,defs)
  endif()
endfunction()
