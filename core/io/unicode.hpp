// UTF-8, and the properties of characters that tokenizers need.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace plugrad::io {

constexpr char32_t kReplacement = 0xfffd;

struct Character {
  char32_t code;
  size_t bytes;  // how many it takes in the text
  bool valid;    // else the bytes begin no character, and code is U+FFFD
};
// Returns the character that begins at text[at]. Of invalid UTF-8 it takes the longest part that begins a character.
Character character_at(std::string_view text, size_t at);
// Whether the text ends inside a character that begins at `at`: more bytes could complete it.
bool ends_inside(std::string_view text, size_t at);
void append_utf8(char32_t code, std::string& out);
// Moves the whole characters at the start of `pending` to the result; invalid bytes become U+FFFD. What may still be the
// start of a character stays in `pending` unless `last` is set.
std::string take_characters(std::string& pending, bool last);

// General categories: L, N, Mn, and one of Cc, Cf, Co.
bool is_letter(char32_t code);
bool is_number(char32_t code);
bool is_mark(char32_t code);
bool is_control(char32_t code);
// The property White_Space.
bool is_space(char32_t code);
// Category P, and all other printable characters of ASCII that are neither letters nor digits.
bool is_punctuation(char32_t code);
// The ideographs between which no spaces are written.
bool is_ideograph(char32_t code);
// Returns the lower-case letter, if it is one character.
char32_t lower(char32_t code);
// Appends the canonical decomposition (NFD) without its nonspacing marks.
void append_without_marks(char32_t code, std::u32string& out);

}  // namespace plugrad::io
