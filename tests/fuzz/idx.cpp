#include <tests/fuzz/target.hpp>
#include <tests/io/idx_bytes.hpp>

#include <plugrad/io/idx.hpp>

namespace plugrad::test {

std::vector<std::string> fuzz_seeds() {
  return {idx_bytes({3, 4, 4}), idx_bytes({7}), idx_bytes({2, 0, 3}), gzip(idx_bytes({3, 4, 4}))};
}

void fuzz_repair(std::string&, int64_t) {}

}  // namespace plugrad::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using namespace plugrad;
  return test::read_file_of(bytes, count, [](const std::string& path) { io::read_idx(path); });
}
