// What a worker tells the program that supervises it, through a pipe.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace plugrad::conformance {

// Kinds of messages, with their fields.
enum class Say : char {
  unusable = 'U',   // why the file cannot be used
  breach = 'B',     // the rule that the plugin broke before any case ran
  no_device = 'N',  // backend, version, reason
  device = 'D',     // backend, version, description
  running = 'R',    // what is being checked now
  result = 'C',     // of a case: see result.hpp
  missing = 'M',    // what tier 0 lacks
  text = 'T',       // the answer to a question for a list, or a table
  changed = 'S',    // what the case changed in the process
  log = 'L',        // a line of the plugin's log
};

struct Message {
  Say kind;
  std::vector<std::string> fields;
};

std::string encoded(const Message& message);
// A plugin's text, as it may go into JSON and onto a terminal: '?' stands for control characters and for bytes that are not
// UTF-8.
std::string readable(const std::string& text);
// Removes the first message from the bytes and returns it; nothing if it is not there as a whole.
std::optional<Message> take_message(std::string& bytes);

}  // namespace plugrad::conformance
