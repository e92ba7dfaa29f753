// The message of an Error, for expectations.
#pragma once
#include <plugrad/runtime/error.hpp>

#include <string>

namespace plugrad::test {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The text of the Error that a function throws, or "no error".
template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace plugrad::test
