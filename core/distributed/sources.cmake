target_sources(plugrad_io PRIVATE
  distributed/buckets.cpp
  distributed/collectives.cpp
  distributed/composition.cpp
  distributed/data_parallel.cpp
  distributed/engine.cpp
  distributed/environment.cpp
  distributed/file_store.cpp
  distributed/group.cpp
  distributed/job.cpp
  distributed/process_group.cpp
  distributed/reduce_rows.cpp
  distributed/store.cpp
  distributed/tcp_store.cpp
  distributed/watch.cpp
  distributed/collective_start.cpp
  distributed/data_parallel_state.cpp
  distributed/data_parallel_steps.cpp)
