// A store in a directory that all ranks reach. A value appears whole: its file is written under another name, then renamed.
//
// Ranks of an earlier run may have left files in the directory. So every rank writes a number drawn at random, and rank 0
// makes a folder named by the numbers of all ranks. Only ranks that find their own number there use it.
#include <core/distributed/store.hpp>

#include <plugrad/runtime/error.hpp>
#include <process/file_text.hpp>

#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

namespace plugrad::distributed {
namespace {
namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

[[noreturn]] void refuse_directory(const std::string& path, const std::string& why) {
  throw Error(Code::peer_lost, "[init_process_group] the store's " + path + " cannot be written: " + why +
                                   ": give a directory that all ranks can reach and write");
}

void write(const std::string& path, const std::string& value, bool replaces) {
  static std::atomic<uint64_t> count{0};
  const std::string whole = path + ".part" + std::to_string(getpid()) + "." + std::to_string(++count);
  std::ofstream file(whole, std::ios::binary);
  file << value;
  file.close();
  std::error_code error;
  if (!file) error = {errno ? errno : EIO, std::generic_category()};
  else if (replaces) fs::rename(whole, path, error);
  else fs::create_hard_link(whole, path, error);
  std::error_code ignored;
  if (error || !replaces) fs::remove(whole, ignored);
  if (error && error != std::errc::file_exists) refuse_directory(path, error.message());
}

class FileStore final : public Store {
 public:
  FileStore(std::string directory, std::string launcher)
      : directory_(std::move(directory)), launcher_(std::move(launcher)) {}
  void set(const std::string& key, const std::string& value) override { write(path(key), value, false); }
  void replace(const std::string& key, const std::string& value) override { write(path(key), value, true); }
  std::optional<std::string> get(const std::string& key) override {
    if (auto value = file_text(path(key))) return value;
    return key == kFailed ? file_text(launcher_) : std::nullopt;
  }

 private:
  std::string path(std::string key) const {
    for (char& c : key)
      if (c == '/') c = '_';
    return directory_ + "/" + key;
  }
  std::string directory_, launcher_;
};

// The meeting of ranks in a directory.
class Meeting {
 public:
  Meeting(std::string directory, std::string failed, const Launch& launch)
      : directory_(std::move(directory)), failed_(std::move(failed)), launch_(launch) {
    std::random_device random;
    mine_ = std::to_string(random()) + std::to_string(random());
  }

  // Returns the folder of this run.
  std::string folder() {
    const auto end = steady_clock::now() + launch_.timeout;
    write(hello(launch_.rank), mine_, true);
    do {
      const std::string seen = launch_.rank ? file_text(directory_ + "/run").value_or("") : invite();
      if (joined(seen)) return directory_ + "/" + seen;
      if (const auto cause = file_text(failed_)) throw Error(Code::peer_lost, "[init_process_group] " + *cause);
      std::this_thread::sleep_for(milliseconds(2));
    } while (steady_clock::now() < end);
    throw Error(Code::peer_lost, "[init_process_group] " + missing() + " did not come to " + directory_ + " within " +
                                     std::to_string(launch_.timeout.count() / 1000) +
                                     " s: are all ranks started with "
                                     "the same PLUGRAD_STORE?");
  }

 private:
  std::string hello(int rank) const { return directory_ + "/hello." + std::to_string(rank); }
  // The name of the folder for the ranks whose numbers are there; "" until all are.
  std::string invite() {
    std::string name;
    for (int i = 0; i < launch_.size; ++i) {
      const auto number = file_text(hello(i));
      if (!number) return "";
      name += (i ? "-" : "") + *number;
    }
    if (name == invited_) return shorter(name);
    invited_ = name;
    fs::create_directories(directory_ + "/" + shorter(name));
    write(directory_ + "/" + shorter(name) + "/ranks", name, true);
    write(directory_ + "/run", shorter(name), true);
    return shorter(name);
  }
  static std::string shorter(const std::string& name) { return "run-" + std::to_string(std::hash<std::string>()(name)); }
  // Tells the others that this rank is in the folder, and returns whether all are.
  bool joined(const std::string& name) {
    if (name.empty()) return false;
    const std::string folder = directory_ + "/" + name;
    if (name != joined_) {
      if (!is_invited(file_text(folder + "/ranks").value_or(""))) return false;
      write(folder + "/here." + std::to_string(launch_.rank), "", true);
      joined_ = name;
    }
    std::error_code error;
    if (launch_.rank) return fs::exists(folder + "/all", error);
    for (int i = 0; i < launch_.size; ++i)
      if (!fs::exists(folder + "/here." + std::to_string(i), error)) return false;
    write(folder + "/all", "", true);
    return true;
  }
  bool is_invited(const std::string& numbers) const {
    std::istringstream text(numbers);
    std::string number;
    for (int i = 0; i <= launch_.rank; ++i)
      if (!std::getline(text, number, '-')) return false;
    return number == mine_;
  }
  std::string missing() const {
    std::string ranks;
    std::error_code error;
    for (int i = 0; i < launch_.size; ++i)
      if (!fs::exists(joined_.empty() ? hello(i) : directory_ + "/" + joined_ + "/here." + std::to_string(i), error))
        ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(i);
    return ranks.empty() ? "a rank" : ranks;
  }

  std::string directory_, failed_;  // failed_: the launcher's file
  const Launch& launch_;
  std::string mine_, invited_, joined_;
};
}  // namespace

std::unique_ptr<Store> open_file_store(const std::string& directory, const Launch& launch) {
  const std::string meeting =
      directory + (launch.job.empty() ? "" : "/" + launch.job) + "/" + std::to_string(launch.generation);
  std::error_code error;
  fs::create_directories(meeting, error);
  if (error) refuse_directory(meeting, error.message());
  const std::string failed = directory + "/" + kFailed;
  return std::make_unique<FileStore>(Meeting(meeting, failed, launch).folder(), failed);
}

}  // namespace plugrad::distributed
