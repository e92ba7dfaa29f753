# Install rules of the components core, dev, sdk and sdk-tools. Each plugin and tool has its own. Included last.
# The tree can be moved: the core finds its plugins beside its own file, and package files use paths relative to themselves.
include(CMakePackageConfigHelpers)

# For plugin authors, without the core. The name ends in -targets because CMake's NAME.cmake includes all NAME-*.cmake.
install(TARGETS plugrad_sdk EXPORT plugrad-sdk COMPONENT sdk)
if(TARGET plugrad_loops)
  # A tree that was built for some targets, as the demo's tree, builds the library now.
  install(CODE "if(NOT EXISTS \"$<TARGET_FILE:plugrad_loops>\")
  execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target plugrad_loops
    COMMAND_ERROR_IS_FATAL ANY)
endif()" COMPONENT sdk)
  install(TARGETS plugrad_loops EXPORT plugrad-sdk ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk)
endif()
install(EXPORT plugrad-sdk FILE plugrad-sdk-targets.cmake NAMESPACE plugrad:: DESTINATION ${PLUGRAD_CMAKEDIR} COMPONENT sdk)
install(DIRECTORY sdk/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
install(FILES sdk/plugin.map sdk/communicator.map cmake/PlugradPlugin.cmake DESTINATION ${PLUGRAD_CMAKEDIR} COMPONENT sdk)
install(FILES sdk/ops.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT sdk)

# The core, and the headers for programs that use it.
if(TARGET plugrad)
  install(TARGETS plugrad EXPORT plugrad-core
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT core NAMELINK_COMPONENT dev)
  install(EXPORT plugrad-core FILE plugrad-core-targets.cmake NAMESPACE plugrad:: DESTINATION ${PLUGRAD_CMAKEDIR}
    COMPONENT dev)
  install(DIRECTORY core/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
endif()

# The program that checks plugins. tools/ installs the other program, plugrad.
if(TARGET plugrad-conform)
  install(TARGETS plugrad-conform EXPORT plugrad-sdk-tools
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT sdk-tools)
  install(EXPORT plugrad-sdk-tools FILE plugrad-sdk-tools-targets.cmake NAMESPACE plugrad:: DESTINATION ${PLUGRAD_CMAKEDIR}
    COMPONENT sdk-tools)
endif()

# The package files. plugradConfig.cmake belongs to the component sdk and reports missing components.
configure_package_config_file(cmake/plugradConfig.cmake.in ${PROJECT_BINARY_DIR}/package/plugradConfig.cmake
  INSTALL_DESTINATION ${PLUGRAD_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/plugradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/plugradConfig.cmake ${PROJECT_BINARY_DIR}/package/plugradConfigVersion.cmake
  DESTINATION ${PLUGRAD_CMAKEDIR} COMPONENT sdk)
file(RELATIVE_PATH PLUGRAD_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(package plugrad plugrad-sdk)
  configure_file(cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/package/${package}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/package/plugrad-sdk.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sdk)
install(FILES ${PROJECT_BINARY_DIR}/package/plugrad.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
