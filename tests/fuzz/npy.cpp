#include <tests/fuzz/target.hpp>

#include <plugrad/io/npy.hpp>
#include <plugrad/ops/factories.hpp>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  const Device host("reference");
  const Tensor floats = ones({2, 3}, DType::f32, host), bools = zeros({5}, DType::boolean, host);
  const auto archive = [&](bool compress) {
    return bytes_written_by([&](const std::string& path) { io::write_npz(path, {{"a", floats}, {"b", bools}}, compress); });
  };
  return {bytes_written_by([&](const std::string& path) { io::write_npy(path, floats); }),
          bytes_written_by([&](const std::string& path) { io::write_npy(path, full({}, 3, DType::i64, host)); }),
          archive(false), archive(true)};
}

// The file of an array stores the length of its header in bytes 8 and 9.
void fuzz_repair(std::string& bytes, int64_t grown) {
  if (bytes.starts_with("\x93NUMPY")) add_to_number(bytes, 8, sizeof(uint16_t), grown);
}

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [&](const std::string& path) {
    const Device host("reference");
    if (count && bytes[0] == 'P') io::read_npz(path, host);
    else io::read_npy(path, host);
  });
}
