target_sources(plugrad PRIVATE
  optimize/bfgs.cpp
  optimize/bounded_step.cpp
  optimize/lbfgs_matrix.cpp
  optimize/lbfgsb.cpp
  optimize/least_squares.cpp
  optimize/levenberg_marquardt.cpp
  optimize/line_search.cpp
  optimize/linear_model.cpp
  optimize/minimize.cpp
  optimize/places.cpp
  optimize/reflective_step.cpp
  optimize/trust_region.cpp
  optimize/trust_region_reflective.cpp)
