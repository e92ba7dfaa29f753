# The sources of the communicator nccl; the tests build them once more, over stand-ins.
set(PLUGRAD_NCCL_SOURCES calls.cpp connection.cpp group.cpp libraries.cpp messages.cpp nccl.cpp staging.cpp)
list(TRANSFORM PLUGRAD_NCCL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND PLUGRAD_NCCL_SOURCES ${PROJECT_SOURCE_DIR}/backends/cuda/library.cpp)
