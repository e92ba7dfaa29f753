target_sources(plugrad_io PRIVATE
  training/batch_source.cpp
  training/data_loader.cpp
  training/dataset.cpp
  training/fit.cpp
  training/progress.cpp)
