#include <tests/fuzz/target.hpp>
#include <tests/io/gguf_bytes.hpp>

#include <plugrad/io/gguf.hpp>
#include <plugrad/plugrad.hpp>

#include <cmath>
#include <cstdlib>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  constexpr uint32_t kText = 8, kArray = 9, kUint32 = 4, kFloat32 = 6, kF32 = 0, kQ40 = 2, kQ4K = 12;
  const std::vector<std::string> entries = {
      gguf_entry("general.architecture", kText, gguf_text("llama")), gguf_entry("general.alignment", kUint32, little(32u)),
      gguf_entry("scale", kFloat32, little(0.5f)), gguf_entry("tokens", kArray, gguf_texts({"a", "bc", ""}))};
  const std::string plain = gguf_file(entries, {gguf_tensor("weight", {4, 2}, kF32, 0)}, std::string(32, '\1'));
  const std::string blocks = gguf_file({}, {gguf_tensor("q4", {64, 2}, kQ40, 0)}, std::string(4 * 18, '\x3c'));
  const std::string large = gguf_file({}, {gguf_tensor("k", {256}, kQ4K, 0)}, std::string(144, '\x2a'));
  std::vector<std::string> seeds = {plain, blocks, large, gguf_file({}, {}, "")};
  struct Type {
    uint32_t id;
    uint64_t block, bytes;
  };
  for (const Type& type : {Type{2, 32, 18},
                           {3, 32, 20},
                           {6, 32, 22},
                           {7, 32, 24},
                           {8, 32, 34},
                           {10, 256, 84},
                           {11, 256, 110},
                           {12, 256, 144},
                           {13, 256, 176},
                           {14, 256, 210}})
    seeds.push_back(
        gguf_file({}, {gguf_tensor("matrix", {type.block, 2}, type.id, 0)}, std::string(2 * type.bytes, '\x5a')));
  return seeds;
}

void fuzz_repair(std::string&, int64_t) {}

}  // namespace plugrad::test

namespace {
// The codes of a matrix, which hold the elements that the matrix has when it is widened.
void read_codes(const plugrad::io::GgufFile& file, const std::string& name, plugrad::Device host) {
  using namespace plugrad;
  try {
    const Quantized weight = file.quantized(name, host);
    const int64_t columns = file.info(name).shape[1];
    if (!weight.codes.count()) return;
    const Tensor widened = dequantize(weight.codes, weight.scales, weight.codes.size(1) * 8 / columns),
                 plain = file.get(name, host);
    const std::vector<float> one = widened.to_vector<float>(), other = plain.to_vector<float>();
    for (size_t i = 0; i < one.size(); ++i)
      if (one[i] != other[i] && !(std::isnan(one[i]) && std::isnan(other[i]))) std::abort();
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [](const std::string& path) {
    const Device host("reference");
    const io::GgufFile file(path);
    for (const std::string& name : file.keys()) file.raw(name);
    test::read_tensors(file, host);
    for (const std::string& name : file.keys())
      if (file.info(name).type.starts_with("Q") && file.info(name).shape.rank() == 2) read_codes(file, name, host);
  });
}
