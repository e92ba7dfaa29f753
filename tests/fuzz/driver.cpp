// fuzz_TARGET [SECONDS] [SEED] | FILE
// Damages valid inputs for SECONDS, 60 by default, and keeps the inputs whose outcome is new. Ends with status 0 if each
// input was read or refused within ten seconds. Otherwise writes the input to fuzz_TARGET.input. With FILE, reads only FILE.
#include <tests/fuzz/target.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

namespace plugrad::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kMostSeconds = 10;      // for one input
constexpr rlim_t kMostBytes = 4ull << 30;  // of address space
constexpr size_t kLargest = 64 << 10;      // inputs that grow beyond this are dropped
constexpr size_t kMostKept = 5000;         // limits the corpus: messages that repeat a part of the input count as new kinds
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // a sanitizer reserves terabytes
#else
constexpr bool kSanitized = false;
#endif

// For the signal handler, which must not allocate.
const std::string* current = nullptr;
char found_path[256];

void keep_input(int number) {
  const int file = open(found_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && current && write(file, current->data(), current->size()) < 0) std::_Exit(97);
  const char* why = number == SIGALRM ? "an input takes more than 10 s: " : "an input ends the process: ";
  if (write(STDERR_FILENO, why, std::strlen(why)) < 0 || write(STDERR_FILENO, found_path, std::strlen(found_path)) < 0)
    std::_Exit(97);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  size_t below(size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random_); }
  std::string mutated(std::string bytes, const std::string& other) {
    const auto before = static_cast<int64_t>(bytes.size());
    for (size_t edits = 1 + below(4) * below(2); edits > 0 && !bytes.empty(); --edits) edit(bytes, other);
    if (below(2)) fuzz_repair(bytes, static_cast<int64_t>(bytes.size()) - before);
    return bytes;
  }

 private:
  void edit(std::string& bytes, const std::string& other) {
    const size_t at = below(bytes.size()), length = std::min(1 + below(8), bytes.size() - at);
    switch (below(8)) {
      case 0: bytes[at] = static_cast<char>(random_()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes.replace(at, length, length, '\xff'); break;
      case 3: bytes.insert(at, std::string(length, static_cast<char>(random_()))); break;
      case 4: bytes.erase(at, length); break;
      case 5: bytes.insert(at, bytes.substr(at, length)); break;
      case 6: number(bytes, at); break;
      default: splice(bytes, at, other);
    }
  }
  // Writes a number at which arithmetic often fails, in binary or as digits.
  void number(std::string& bytes, size_t at) {
    static constexpr uint64_t kNumbers[] = {0,          1,          7,          127,        255,   65535,    1ull << 31,
                                            0xffffffff, 1ull << 32, ~0ull >> 1, 1ull << 63, ~0ull, ~0ull - 7};
    const uint64_t value = kNumbers[below(std::size(kNumbers))] + below(3) - 1;
    if (below(2) && std::isdigit(static_cast<unsigned char>(bytes[at]))) {
      bytes.replace(at, 1, std::to_string(value));
    } else {
      const size_t width = std::min<size_t>(size_t{1} << below(4), bytes.size() - at);
      std::memcpy(&bytes[at], &value, width);
    }
  }
  void splice(std::string& bytes, size_t at, const std::string& other) {
    if (other.empty()) return;
    const size_t from = below(other.size());
    bytes.insert(at, other.substr(from, 1 + below(32)));
  }

  std::mt19937 random_;
};

// The letters of an outcome outside of quotation marks, which often repeat the input.
std::string kind_of(const std::string& outcome) {
  std::string kind;
  bool quoted = false;
  for (const char c : outcome) {
    if (c == '\'' || c == '"') quoted = !quoted;
    if (!quoted && std::isalpha(static_cast<unsigned char>(c))) kind += c;
  }
  return kind.substr(0, 200);
}

void run_one(const std::string& input) {
  current = &input;
  alarm(kMostSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
}

int fuzz(int seconds, uint32_t seed) {
  std::vector<std::string> corpus = fuzz_seeds();
  std::set<std::string> kinds;
  for (const std::string& each : corpus) {
    run_one(each);
    if (last_outcome().empty()) continue;
    std::fprintf(stderr, "a valid input is refused: %s\n", last_outcome().c_str());
    return 1;
  }
  const size_t valid = corpus.size();
  Mutator mutator(seed);
  // Half of the inputs derive from valid inputs, because most of the kept inputs are refused.
  const auto choose = [&]() -> const std::string& {
    return corpus[mutator.below(mutator.below(2) ? valid : corpus.size())];
  };
  uint64_t inputs = 0, refused = 0;
  for (const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds); Clock::now() < end; ++inputs) {
    std::string input = mutator.mutated(choose(), choose());
    run_one(input);
    refused += !last_outcome().empty();
    if (input.size() <= kLargest && corpus.size() < kMostKept && kinds.insert(kind_of(last_outcome())).second)
      corpus.push_back(std::move(input));
  }
  std::printf("%llu inputs, %llu refused for %zu kinds of reasons\n", static_cast<unsigned long long>(inputs),
              static_cast<unsigned long long>(refused), kinds.size());
  const bool meets_the_reader = refused > inputs / 10 && kinds.size() > 3;
  if (!meets_the_reader) std::fprintf(stderr, "the inputs do not meet the reader's checks\n");
  return meets_the_reader ? 0 : 1;
}

int main_of(int argc, char** argv) {
  std::snprintf(found_path, sizeof found_path, "%s.input", argv[0]);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) std::signal(number, keep_input);
  const rlimit limit{kMostBytes, kMostBytes};
  if (!kSanitized && setrlimit(RLIMIT_AS, &limit)) return 1;
  char* end = nullptr;
  const long seconds = argc > 1 ? std::strtol(argv[1], &end, 10) : 60;
  if (argc > 1 && *end) {
    std::ifstream file(argv[1], std::ios::binary);
    run_one(std::string(std::istreambuf_iterator<char>(file), {}));
    std::printf("%s\n", last_outcome().empty() ? "read" : last_outcome().c_str());
    return 0;
  }
  const uint32_t seed = argc > 2 ? static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)) : std::random_device()();
  std::printf("seed %u\n", seed);
  return fuzz(static_cast<int>(seconds), seed);
}

}  // namespace
}  // namespace plugrad::test

int main(int argc, char** argv) { return plugrad::test::main_of(argc, argv); }
