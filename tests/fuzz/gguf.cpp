#include <tests/fuzz/target.hpp>
#include <tests/io/gguf_bytes.hpp>

#include <plugrad/io/gguf.hpp>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  constexpr uint32_t kText = 8, kArray = 9, kUint32 = 4, kFloat32 = 6, kF32 = 0, kQ40 = 2, kQ4K = 12;
  const std::vector<std::string> entries = {
      gguf_entry("general.architecture", kText, gguf_text("llama")), gguf_entry("general.alignment", kUint32, little(32u)),
      gguf_entry("scale", kFloat32, little(0.5f)), gguf_entry("tokens", kArray, gguf_texts({"a", "bc", ""}))};
  const std::string plain = gguf_file(entries, {gguf_tensor("weight", {4, 2}, kF32, 0)}, std::string(32, '\1'));
  const std::string blocks = gguf_file({}, {gguf_tensor("q4", {64, 2}, kQ40, 0)}, std::string(4 * 18, '\x3c'));
  const std::string large = gguf_file({}, {gguf_tensor("k", {256}, kQ4K, 0)}, std::string(144, '\x2a'));
  return {plain, blocks, large, gguf_file({}, {}, "")};
}

void fuzz_repair(std::string&, int64_t) {}

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [](const std::string& path) {
    const Device host("reference");
    const io::GgufFile file(path);
    for (const std::string& name : file.keys()) file.raw(name);
    test::read_tensors(file, host);
  });
}
