target_sources(plugrad PRIVATE
  nn/adam.cpp
  nn/layer_matrix.cpp
  nn/linear.cpp
  nn/module.cpp
  nn/optimizer.cpp
  nn/sgd.cpp)
