target_sources(plugrad PRIVATE
  nn/activations.cpp
  nn/adam.cpp
  nn/attention.cpp
  nn/containers.cpp
  nn/convolutions.cpp
  nn/init.cpp
  nn/layer_matrix.cpp
  nn/layers.cpp
  nn/lion.cpp
  nn/module.cpp
  nn/normalizations.cpp
  nn/optimizer.cpp
  nn/poolings.cpp
  nn/recurrent.cpp
  nn/rmsprop.cpp
  nn/schedules.cpp
  nn/sgd.cpp)
