// UTF-8, and the properties of characters for tokenizers.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace plugrad::io {

constexpr char32_t kReplacement = 0xfffd;

struct Character {
  char32_t code;
  size_t bytes;  // its length in the text
  bool valid;    // false: the bytes are not a character, and code is U+FFFD
};
// Returns the character at text[at]. Of invalid UTF-8 it takes the longest part of the start of a character.
Character character_at(std::string_view text, size_t at);
// Whether the text ends inside a character that begins at `at`: more bytes could complete it.
bool ends_inside(std::string_view text, size_t at);
void append_utf8(char32_t code, std::string& out);
// Moves the whole characters at the start of `pending` to the result; invalid bytes become U+FFFD. A possible start of a
// character stays in `pending` unless `last` is set.
std::string take_characters(std::string& pending, bool last);

// General categories: L, N, Mn, and Cc, Cf or Co.
bool is_letter(char32_t code);
bool is_number(char32_t code);
bool is_mark(char32_t code);
bool is_control(char32_t code);
// The property White_Space.
bool is_space(char32_t code);
// Category P, and all other printable characters of ASCII except letters and digits.
bool is_punctuation(char32_t code);
// The ideographs of scripts without spaces.
bool is_ideograph(char32_t code);
// Returns the lower-case letter, if it is a single character.
char32_t lower(char32_t code);
// Appends the canonical decomposition (NFD) without its nonspacing marks.
void append_without_marks(char32_t code, std::u32string& out);

}  // namespace plugrad::io
