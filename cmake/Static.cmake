# The component static: the core and the backends as archives, for programs that need no file of plugrad when they run. The
# archives have the objects of the shared libraries, so they cost no compilation.
if(NOT TARGET plugrad OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
add_library(plugrad_archive STATIC
  $<TARGET_OBJECTS:plugrad> $<TARGET_OBJECTS:plugrad_io> $<TARGET_OBJECTS:plugrad_onnx>
  $<TARGET_OBJECTS:plugrad_runtime> $<TARGET_OBJECTS:plugrad_process>)
set_target_properties(plugrad_archive PROPERTIES EXPORT_NAME core-static OUTPUT_NAME plugrad LINKER_LANGUAGE CXX)
target_include_directories(plugrad_archive PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(plugrad_archive PUBLIC plugrad::sdk Threads::Threads ZLIB::ZLIB ${CMAKE_DL_LIBS})
set(archives plugrad_archive)
foreach(backend cpu reference)
  if(TARGET plugrad_backend_${backend})
    set_target_properties(plugrad_backend_${backend} PROPERTIES
      EXPORT_NAME backend-${backend}-static OUTPUT_NAME plugrad-backend-${backend})
    install(FILES backends/${backend}/include/plugrad/backends/${backend}.hpp
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plugrad/backends COMPONENT static)
    list(APPEND archives plugrad_backend_${backend})
  endif()
endforeach()
install(TARGETS ${archives} EXPORT plugrad-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT static)
install(EXPORT plugrad-static FILE plugrad-static-targets.cmake NAMESPACE plugrad:: DESTINATION ${PLUGRAD_CMAKEDIR}
  COMPONENT static)
install(FILES cmake/PlugradStatic.cmake DESTINATION ${PLUGRAD_CMAKEDIR} COMPONENT static)
