#include <backends/cuda/code_cache.hpp>

#include <backends/cuda/error.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace plugrad::cuda {

CodeCache::CodeCache(const std::string& plugin, const std::string& architecture, const std::string& compiler,
                     const std::string& build, const char* directory, std::chrono::milliseconds pause)
    : file_(plugin, architecture, compiler, build, directory), pause_(pause) {
  const std::lock_guard lock(all_mutex());
  all().push_back(this);
}

CodeCache::~CodeCache() {
  if (was_forked()) return;  // another thread may have held the lock
  const std::lock_guard lock(all_mutex());
  std::erase(all(), this);
}

// Never destroyed: the compiler's thread uses them until the process ends.
std::mutex& CodeCache::all_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::vector<CodeCache*>& CodeCache::all() {
  static std::vector<CodeCache*>& caches = *new std::vector<CodeCache*>;
  return caches;
}

void CodeCache::write_all() noexcept {
  try {
    const std::lock_guard lock(all_mutex());
    for (CodeCache* each : all()) each->write();
  } catch (const std::exception&) {  // no memory for the file's contents: the fusions serve without it
  }
}

std::vector<char> CodeCache::find(const std::string& source) {
  const std::lock_guard lock(mutex_);
  read_once();
  const auto found = std::ranges::find(entries_, source, &Entry::source);
  if (found == entries_.end()) return {};
  std::rotate(found, found + 1, entries_.end());
  return entries_.back().code;
}

void CodeCache::add(const std::string& source, std::span<const char> code) {
  Entry entry{source, {code.begin(), code.end()}};
  {
    const std::lock_guard lock(mutex_);
    read_once();
    put(entries_, std::move(entry));
    trim(entries_);
    is_changed_ = true;
    if (written_ && std::chrono::steady_clock::now() - *written_ < pause_) return;
  }
  write();
}

void CodeCache::write() {
  const std::lock_guard one_at_a_time(write_mutex_);
  Entries mine;
  {
    const std::lock_guard lock(mutex_);
    if (!is_changed_) return;
    mine = entries_;
    is_changed_ = false;
    written_ = std::chrono::steady_clock::now();
  }
  Entries all = parsed(file_.read());
  for (Entry& each : mine) put(all, std::move(each));
  trim(all);
  file_.write(text_of(all));
}

void CodeCache::read_once() {
  if (!std::exchange(is_read_, true)) entries_ = parsed(file_.read());
}

void CodeCache::put(Entries& entries, Entry entry) {
  std::erase_if(entries, [&](const Entry& each) { return each.source == entry.source; });
  entries.push_back(std::move(entry));
}

void CodeCache::trim(Entries& entries) {
  const auto add = [](uint64_t sum, const Entry& each) { return sum + each.bytes(); };
  for (uint64_t sum = std::accumulate(entries.begin(), entries.end(), uint64_t{0}, add); sum > kMostBytes;) {
    sum -= entries.front().bytes();
    entries.pop_front();
  }
}

// --- The data of the file: for each entry the sizes of source and code, and then both.

CodeCache::Entries CodeCache::parsed(std::span<const char> data) {
  Entries entries;
  uint64_t sizes[2];
  while (data.size() >= sizeof sizes) {
    std::memcpy(sizes, data.data(), sizeof sizes);
    data = data.subspan(sizeof sizes);
    if (sizes[0] > data.size() || sizes[1] > data.size() - sizes[0]) break;
    const auto code = data.subspan(sizes[0], sizes[1]);
    entries.push_back({{data.data(), sizes[0]}, {code.begin(), code.end()}});
    data = data.subspan(sizes[0] + sizes[1]);
  }
  return entries;
}

std::vector<char> CodeCache::text_of(const Entries& entries) {
  std::vector<char> data;
  for (const Entry& each : entries) {
    const uint64_t sizes[] = {each.source.size(), each.code.size()};
    const auto* const first = reinterpret_cast<const char*>(sizes);
    data.insert(data.end(), first, first + sizeof sizes);
    data.insert(data.end(), each.source.begin(), each.source.end());
    data.insert(data.end(), each.code.begin(), each.code.end());
  }
  return data;
}

}  // namespace plugrad::cuda
