// Damages a valid file in many ways: a reader must return a value or throw an Error.
#pragma once
#include <plugrad/runtime/error.hpp>

#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace plugrad::test {

// Changes, inserts, removes or repeats a few bytes.
inline std::string mutated(std::string bytes, std::mt19937& engine) {
  const auto below = [&](size_t bound) { return engine() % bound; };
  for (size_t edits = 1 + below(3); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size()), length = std::min(1 + below(8), bytes.size() - at);
    switch (below(6)) {
      case 0: bytes[at] = static_cast<char>(engine()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes.replace(at, length, length, '\xff'); break;
      case 3: bytes.insert(at, std::string(length, static_cast<char>(engine()))); break;
      case 4: bytes.erase(at, length); break;
      default: bytes.insert(at, bytes.substr(at, length));
    }
  }
  return bytes;
}

// Calls `read` with `files` damaged files, and returns how many of them it refused with an Error. Any other exception fails
// the test.
template <class Read> size_t count_refused(const Scratch& scratch, const std::string& bytes, int files, Read read) {
  std::mt19937 engine(20261122);
  size_t refused = 0;
  for (int i = 0; i < files; ++i) {
    const std::string path = scratch.write("damaged", mutated(bytes, engine));
    try {
      read(path);
    } catch (const Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "file " << i << ": " << error.what();
    }
  }
  return refused;
}

}  // namespace plugrad::test
