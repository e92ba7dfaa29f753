#include <tests/nccl/board.hpp>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace plugrad::test {
namespace {
constexpr std::chrono::microseconds kNap{100};
}

// A value appears whole.
void Board::post(const std::string& name, const std::string& bytes) const {
  const std::string path = folder_ + "/" + name, part = path + ".part";
  std::ofstream(part, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::error_code failed;
  std::filesystem::rename(part, path, failed);
}

bool Board::has(const std::string& name) const { return access((folder_ + "/" + name).c_str(), F_OK) == 0; }

bool Board::take(const std::string& name, std::string& bytes, const std::atomic<bool>& ends) const {
  for (;;) {
    if (ends) return false;
    if (std::ifstream in(folder_ + "/" + name, std::ios::binary); in) {
      bytes.assign(std::istreambuf_iterator<char>(in), {});
      return true;
    }
    std::this_thread::sleep_for(kNap);
  }
}

bool Board::wait_until_gone(const std::string& name, const std::atomic<bool>& ends) const {
  while (has(name)) {
    if (ends) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

void Board::remove(const std::string& name) const { unlink((folder_ + "/" + name).c_str()); }

void Board::clear() const {
  std::error_code failed;
  std::filesystem::remove_all(folder_, failed);
}

}  // namespace plugrad::test
