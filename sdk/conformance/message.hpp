// The messages of a worker to its supervisor, through a pipe.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace plugrad::conformance {

// Kinds of messages, with their fields.
enum class Say : char {
  unusable = 'U',   // why the file cannot be used
  breach = 'B',     // the rule broken by the plugin before any case ran
  no_device = 'N',  // backend, version, reason
  device = 'D',     // backend, version, description
  running = 'R',    // the current check
  result = 'C',     // of a case: see result.hpp
  missing = 'M',    // the missing ops of tier 0
  text = 'T',       // the answer to a question for a list, or a table
  changed = 'S',    // the state of the process that the case changed
  log = 'L',        // a line of the plugin's log
};

struct Message {
  Say kind;
  std::vector<std::string> fields;
};

std::string encoded(const Message& message);
// Returns a plugin's text in a form for JSON and terminals: '?' replaces control characters and bytes outside UTF-8.
std::string readable(const std::string& text);
// Removes the first message from the bytes and returns it; nothing if it is not there as a whole.
std::optional<Message> take_message(std::string& bytes);

}  // namespace plugrad::conformance
