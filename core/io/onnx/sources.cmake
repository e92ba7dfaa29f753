# ONNX files: a library of its own inside the core, in small batches.
add_library(plugrad_onnx STATIC
  io/onnx/call.cpp io/onnx/element_types.cpp io/onnx/export.cpp io/onnx/export_graph.cpp io/onnx/export_ops.cpp
  io/onnx/export_windows.cpp io/onnx/file_values.cpp io/onnx/fold.cpp io/onnx/graph.cpp io/onnx/messages.cpp
  io/onnx/onnx_model.cpp io/onnx/plans.cpp io/onnx/run.cpp io/onnx/tensors.cpp io/onnx/wire.cpp
  io/onnx/ops/activations.cpp io/onnx/ops/attentions.cpp io/onnx/ops/combining.cpp io/onnx/ops/constants.cpp
  io/onnx/ops/contrib.cpp io/onnx/ops/control.cpp io/onnx/ops/convolutions.cpp io/onnx/ops/elementwise.cpp
  io/onnx/ops/indexing.cpp io/onnx/ops/integers.cpp io/onnx/ops/losses.cpp io/onnx/ops/normalizations.cpp
  io/onnx/ops/poolings.cpp io/onnx/ops/products.cpp io/onnx/ops/quantizations.cpp io/onnx/ops/quantized_contrib.cpp
  io/onnx/ops/random.cpp
  io/onnx/ops/recurrent.cpp io/onnx/ops/reductions.cpp io/onnx/ops/regions.cpp io/onnx/ops/resizing.cpp
  io/onnx/ops/scatters.cpp io/onnx/ops/sequences.cpp io/onnx/ops/shapes.cpp io/onnx/ops/signals.cpp
  io/onnx/ops/tables.cpp io/onnx/ops/training.cpp)
target_link_libraries(plugrad_onnx PUBLIC plugrad::sdk)
