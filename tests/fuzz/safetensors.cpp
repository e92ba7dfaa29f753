#include <tests/fuzz/target.hpp>

#include <plugrad/io/safetensors.hpp>
#include <plugrad/ops/factories.hpp>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  const Device host("reference");
  const auto file = [](const std::map<std::string, Tensor>& tensors, const io::Metadata& metadata) {
    return bytes_written_by([&](const std::string& path) { io::write_safetensors(path, tensors, metadata); });
  };
  return {file({{"a", ones({2, 3}, DType::f32, host)}, {"b", zeros({4}, DType::boolean, host)}}, {{"key", "some text"}}),
          file({{"empty", ones({0, 3}, DType::bf16, host)}, {"scalar", full({}, 7, DType::i64, host)}}, {}), file({}, {})};
}

// The file begins with the length of its header.
void fuzz_repair(std::string& bytes, int64_t grown) { add_to_number(bytes, 0, sizeof(uint64_t), grown); }

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [](const std::string& path) {
    const Device host("reference");
    test::read_tensors(io::SafetensorsFile(path), host);
    io::read_safetensors(path, host);
  });
}
