# A wheel takes the core and its plugins from a release tree, so that they compile once for the tree, for each wheel and for
# each version of Python: from build/ if that is a release by the same compiler for all processors, else from build-wheel/,
# which this file configures. Defines plugrad::core, and the target plugrad_release, which brings the tree up to date.
set(needed CMAKE_BUILD_TYPE=Release PLUGRAD_CPU_SIMD=all PLUGRAD_CPU_LINALG=ON PLUGRAD_CPU=ON
    CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} CMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}
    CMAKE_HOME_DIRECTORY=${PROJECT_SOURCE_DIR})

# plugrad_tree_serves(RESULT TREE): whether the tree's settings are those of `needed`.
function(plugrad_tree_serves result tree)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT EXISTS ${tree}/CMakeCache.txt OR NOT EXISTS ${tree}/build.ninja)
    return()
  endif()
  foreach(entry IN LISTS needed)
    string(REGEX MATCH "^([^=]+)=(.*)$" entry "${entry}")
    set(name ${CMAKE_MATCH_1})
    set(wanted "${CMAKE_MATCH_2}")
    file(STRINGS ${tree}/CMakeCache.txt line REGEX "^${name}:")
    string(REGEX REPLACE "^[^=]*=" "" value "${line}")
    if(name STREQUAL "CMAKE_CXX_COMPILER")
      file(REAL_PATH "${value}" value)
      file(REAL_PATH "${wanted}" wanted)
    endif()
    if(NOT value STREQUAL wanted)
      message(STATUS "${tree} does not serve a wheel: ${name} is '${value}', not '${wanted}'")
      return()
    endif()
  endforeach()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

set(PLUGRAD_RELEASE_TREE ${PROJECT_SOURCE_DIR}/build)
plugrad_tree_serves(serves ${PLUGRAD_RELEASE_TREE})
if(NOT serves)
  set(PLUGRAD_RELEASE_TREE ${PROJECT_SOURCE_DIR}/build-wheel)
  plugrad_tree_serves(serves ${PLUGRAD_RELEASE_TREE})
endif()
if(NOT serves)
  # Not the programs that pip may have installed for this build alone: the tree outlives them.
  find_program(PLUGRAD_TREE_CMAKE cmake PATHS /usr/local/bin /usr/bin NO_DEFAULT_PATH)
  find_program(PLUGRAD_TREE_NINJA ninja PATHS /usr/local/bin /usr/bin NO_DEFAULT_PATH)
  if(NOT PLUGRAD_TREE_CMAKE OR NOT PLUGRAD_TREE_NINJA)
    set(PLUGRAD_TREE_CMAKE ${CMAKE_COMMAND})
    find_program(PLUGRAD_TREE_NINJA ninja REQUIRED)
  endif()
  execute_process(
    COMMAND ${PLUGRAD_TREE_CMAKE} -G Ninja -S ${PROJECT_SOURCE_DIR} -B ${PLUGRAD_RELEASE_TREE} -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_MAKE_PROGRAM=${PLUGRAD_TREE_NINJA} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS} -DPLUGRAD_CPU_SIMD=all
      -DPLUGRAD_TESTS=OFF -DPLUGRAD_BENCH=OFF -DPLUGRAD_TOOLS=OFF -DPLUGRAD_CUDA=OFF -DPLUGRAD_VULKAN=OFF
    COMMAND_ERROR_IS_FATAL ANY)
endif()
message(STATUS "core and plugins from ${PLUGRAD_RELEASE_TREE}")

# The module is imported to make its stub, and expects the libraries beside itself.
file(MAKE_DIRECTORY ${PLUGRAD_RELEASE_TREE}/lib)
file(CREATE_LINK ${PLUGRAD_RELEASE_TREE}/lib ${PROJECT_BINARY_DIR}/lib SYMBOLIC)

# The tree decides what is out of date; ninja locks it against a second build.
set(soname libplugrad.so.${PROJECT_VERSION_MAJOR})
set(library ${PLUGRAD_RELEASE_TREE}/lib/libplugrad.so.${PROJECT_VERSION})
set(plugins ${PLUGRAD_RELEASE_TREE}/lib/plugrad/plugins-v0)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
# Communicators where the tree has found their engines.
set(communicators)
foreach(communicator gloo mpi)
  file(STRINGS ${PLUGRAD_RELEASE_TREE}/build.ninja found REGEX "^build plugrad-communicator-${communicator}:" LIMIT_COUNT 1)
  if(found)
    list(APPEND communicators plugrad-communicator-${communicator})
    install(PROGRAMS ${plugins}/libplugrad-communicator-${communicator}.so DESTINATION ${PLUGRAD_PLUGINDIR}
      COMPONENT communicator-${communicator})
  endif()
endforeach()
add_custom_target(plugrad_release
  COMMAND ${CMAKE_COMMAND} --build ${PLUGRAD_RELEASE_TREE} --parallel ${cores}
    --target plugrad plugrad-backend-cpu plugrad-backend-reference ${communicators}
  BYPRODUCTS ${library} USES_TERMINAL)
add_library(plugrad::core SHARED IMPORTED)
set_target_properties(plugrad::core PROPERTIES IMPORTED_LOCATION ${library} IMPORTED_SONAME ${soname}
  INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/core/include)
target_link_libraries(plugrad::core INTERFACE plugrad::sdk)

# A wheel holds no symbolic links: there the file is named by the SONAME alone.
install(PROGRAMS ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME ${soname} COMPONENT core)
install(PROGRAMS ${PLUGRAD_RELEASE_TREE}/lib/plugrad/plugrad-probe DESTINATION ${CMAKE_INSTALL_LIBDIR}/plugrad
  COMPONENT core)
foreach(backend cpu reference)
  install(PROGRAMS ${plugins}/libplugrad-backend-${backend}.so DESTINATION ${PLUGRAD_PLUGINDIR} COMPONENT backend-${backend})
endforeach()
install(CODE "
  if(CMAKE_INSTALL_DO_STRIP)
    set(folder \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
    file(GLOB_RECURSE files \"\${folder}/*.so*\")
    execute_process(COMMAND \"${CMAKE_STRIP}\" \${files} \"\${folder}/plugrad/plugrad-probe\")
  endif()" COMPONENT python)
