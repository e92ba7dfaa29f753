find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
target_sources(plugrad_io PRIVATE
  io/byte_pairs.cpp
  io/byte_source.cpp
  io/characters.cpp
  io/cifar.cpp
  io/fashion_mnist.cpp
  io/file.cpp
  io/ggml_types.cpp
  io/gguf.cpp
  io/gguf_header.cpp
  io/idx.cpp
  io/mapped_tensor.cpp
  io/moons.cpp
  io/npy.cpp
  io/npz.cpp
  io/opened_file.cpp
  io/saved_model.cpp
  io/model_ops.cpp
  io/model_reader.cpp
  io/model_writer.cpp
  io/quote.cpp
  io/row_range.cpp
  io/safetensors_header.cpp
  io/safetensors_reader.cpp
  io/safetensors_writer.cpp
  io/shuffle.cpp
  io/strict_json.cpp
  io/token_finder.cpp
  io/unicode.cpp
  io/word_piece_format.cpp
  io/word_pieces.cpp
  io/words.cpp
  io/zip_reader.cpp
  io/zip_writer.cpp)
target_link_libraries(plugrad_io PRIVATE ZLIB::ZLIB nlohmann_json::nlohmann_json)
