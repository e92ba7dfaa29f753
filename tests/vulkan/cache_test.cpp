// The file of compiled pipelines: a driver gets only data that an earlier process stored.
#include <backends/vulkan/cache_file.hpp>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace plugrad::vulkan {
namespace {
namespace fs = std::filesystem;

VkPhysicalDeviceProperties properties() {
  VkPhysicalDeviceProperties p{};
  p.vendorID = 0x1234;
  p.deviceID = 0x56;
  p.driverVersion = 7;
  std::memcpy(p.pipelineCacheUUID, "sixteen letters.", VK_UUID_SIZE);
  return p;
}

// Data that a driver could return: Vulkan's header, then this many bytes.
std::vector<char> data_of(const VkPhysicalDeviceProperties& p, size_t bytes) {
  const uint32_t header[] = {32, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, p.vendorID, p.deviceID};
  std::vector<char> data(32 + bytes);
  std::memcpy(data.data(), header, sizeof header);
  std::memcpy(data.data() + sizeof header, p.pipelineCacheUUID, VK_UUID_SIZE);
  for (size_t i = 32; i < data.size(); ++i) data[i] = static_cast<char>(i * 7);
  return data;
}

class PipelineCache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("plugrad-pipelines-" + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  CacheFile file() const { return CacheFile(folder_.c_str(), properties_); }
  std::string stored_bytes() const {
    std::ifstream in(file().path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void store_bytes(const std::string& bytes) const {
    std::ofstream(file().path(), std::ios::binary | std::ios::trunc) << bytes;
  }

  fs::path folder_;
  const VkPhysicalDeviceProperties properties_ = properties();
};

TEST_F(PipelineCache, ReturnsWhatWasStoredLast) {
  EXPECT_TRUE(file().read().empty());
  for (const size_t bytes : {100, 100000, 5}) {
    file().write(data_of(properties_, bytes));
    EXPECT_EQ(file().read(), data_of(properties_, bytes));
  }
  struct stat about;
  ASSERT_EQ(stat(file().path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "parts were left behind";
}

TEST_F(PipelineCache, ADamagedFileDoesNotCount) {
  file().write(data_of(properties_, 50));
  const std::string whole = stored_bytes();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    store_bytes(damaged);
    EXPECT_TRUE(file().read().empty()) << "byte " << i;
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    store_bytes(whole.substr(0, length));
    EXPECT_TRUE(file().read().empty()) << "length " << length;
  }
  store_bytes(whole + "x");
  EXPECT_TRUE(file().read().empty());
  store_bytes(whole);
  EXPECT_EQ(file().read(), data_of(properties_, 50));
}

// Nor does a file of another build of the plugin, if the contents depend on it.
TEST_F(PipelineCache, AFileOfAnotherDeviceOrDriverDoesNotCount) {
  file().write(data_of(properties_, 50));
  const std::string whole = stored_bytes();
  const auto counts_for = [&](void (*change)(VkPhysicalDeviceProperties&)) {
    VkPhysicalDeviceProperties other = properties_;
    change(other);
    const CacheFile its(folder_.c_str(), other);
    std::ofstream(its.path(), std::ios::binary | std::ios::trunc) << whole;
    return !its.read().empty();
  };
  EXPECT_TRUE(counts_for([](VkPhysicalDeviceProperties&) {}));
  EXPECT_FALSE(counts_for([](VkPhysicalDeviceProperties& p) { ++p.vendorID; }));
  EXPECT_FALSE(counts_for([](VkPhysicalDeviceProperties& p) { ++p.deviceID; }));
  EXPECT_FALSE(counts_for([](VkPhysicalDeviceProperties& p) { ++p.driverVersion; }));
  EXPECT_FALSE(counts_for([](VkPhysicalDeviceProperties& p) { ++p.pipelineCacheUUID[15]; }));

  const std::vector<char> tuned = {'6', '4'};
  const DeviceCache first("npu", "device", "1.0", "build 1", folder_.c_str());
  const DeviceCache second("npu", "device", "1.0", "build 2", folder_.c_str());
  const DeviceCache other("npu", "devi", "ce1.0", "build 1", folder_.c_str());
  first.write(tuned);
  EXPECT_EQ(first.path(), second.path());
  EXPECT_NE(first.path(), other.path());
  EXPECT_EQ(first.read(), tuned);
  EXPECT_TRUE(second.read().empty() && other.read().empty());
  second.write({});
  EXPECT_TRUE(first.read().empty());
  EXPECT_FALSE(build_of_plugin().empty());
}

TEST_F(PipelineCache, DataThatCannotBeUsedAreNotStored) {
  VkPhysicalDeviceProperties other = properties_;
  ++other.vendorID;
  file().write(data_of(other, 50));
  file().write(data_of(properties_, 0));  // the data of a driver that stores nothing
  file().write({});
  EXPECT_FALSE(fs::exists(file().path()));
}

TEST_F(PipelineCache, OnlyTheUsersOwnRegularFileCounts) {
  file().write(data_of(properties_, 50));
  const fs::path path = file().path(), elsewhere = folder_ / "elsewhere";
  fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
  EXPECT_TRUE(file().read().empty());
  fs::permissions(path, fs::perms::group_write, fs::perm_options::remove);
  EXPECT_FALSE(file().read().empty());

  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  EXPECT_TRUE(file().read().empty());
  file().write(data_of(properties_, 60));  // replaces the link, not its target
  EXPECT_EQ(file().read(), data_of(properties_, 60));
  EXPECT_FALSE(fs::is_symlink(path));

  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(file().read().empty());
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_TRUE(file().read().empty());
  file().write(data_of(properties_, 60));
  EXPECT_TRUE(file().read().empty());
}

TEST_F(PipelineCache, WithoutADirectoryThereIsNoCache) {
  const CacheFile none("off", properties_);
  EXPECT_EQ(none.path(), "");
  none.write(data_of(properties_, 50));
  EXPECT_TRUE(none.read().empty());
  const CacheFile impossible("/dev/null/below", properties_);
  impossible.write(data_of(properties_, 50));
  EXPECT_TRUE(impossible.read().empty());
}

}  // namespace
}  // namespace plugrad::vulkan
