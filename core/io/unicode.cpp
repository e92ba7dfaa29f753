#include <core/io/unicode.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace plugrad::io {
namespace {

struct Range {
  char32_t first, last;
};
// Every step-th character from first to last has a lower-case letter at `distance`.
struct LowerRun {
  char32_t first, last, step;
  int32_t distance;
};
struct Single {
  char32_t code, base;
};
struct Several {
  char32_t code, first, second, third;
};

#include <core/io/unicode_classes.inl>
#include <core/io/unicode_decompositions.inl>

// Returns the last row with a first code point of at most `code`, or null.
template <class Row, class Key> const Row* row_for(std::span<const Row> rows, char32_t code, Key key) {
  const auto after = std::ranges::upper_bound(rows, code, {}, key);
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

bool contains(std::span<const Range> ranges, char32_t code) {
  const Range* range = row_for(ranges, code, &Range::first);
  return range && code <= range->last;
}

// The number of bytes after a lead byte, or -1; and the range of the first of them: UTF-8 is shortest, without surrogates.
struct Lead {
  int following;
  uint8_t least, most;
};
Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xc2) return {-1, 0, 0};
  if (byte < 0xe0) return {1, 0x80, 0xbf};
  if (byte < 0xf0)
    return {2, static_cast<uint8_t>(byte == 0xe0 ? 0xa0 : 0x80), static_cast<uint8_t>(byte == 0xed ? 0x9f : 0xbf)};
  if (byte < 0xf5)
    return {3, static_cast<uint8_t>(byte == 0xf0 ? 0x90 : 0x80), static_cast<uint8_t>(byte == 0xf4 ? 0x8f : 0xbf)};
  return {-1, 0, 0};
}

// Returns the number of bytes at `at` that are a character or its start.
size_t good_bytes(std::string_view text, size_t at, const Lead& lead) {
  size_t count = 1;
  while (count <= static_cast<size_t>(lead.following) && at + count < text.size()) {
    const uint8_t byte = static_cast<uint8_t>(text[at + count]);
    const bool good = count == 1 ? byte >= lead.least && byte <= lead.most : byte >= 0x80 && byte <= 0xbf;
    if (!good) break;
    ++count;
  }
  return count;
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  const uint8_t first = static_cast<uint8_t>(text[at]);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.following < 0) return {kReplacement, 1, false};
  const size_t count = good_bytes(text, at, lead);
  if (count <= static_cast<size_t>(lead.following)) return {kReplacement, count, false};
  char32_t code = first & (0x3fu >> lead.following);
  for (size_t i = 1; i < count; ++i) code = code << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3fu);
  return {code, count, true};
}

bool ends_inside(std::string_view text, size_t at) {
  const Lead lead = lead_of(static_cast<uint8_t>(text[at]));
  return lead.following > 0 && at + good_bytes(text, at, lead) == text.size() &&
         text.size() - at <= static_cast<size_t>(lead.following);
}

void append_utf8(char32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::string take_characters(std::string& pending, bool last) {
  std::string out;
  size_t at = 0;
  while (at < pending.size() && (last || !ends_inside(pending, at))) {
    const Character character = character_at(pending, at);
    append_utf8(character.code, out);
    at += character.bytes;
  }
  pending.erase(0, at);
  return out;
}

bool is_letter(char32_t code) {
  if (code < 0x80) return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
  return contains(kLetters, code);
}
bool is_number(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return contains(kNumbers, code);
}
bool is_mark(char32_t code) { return code >= 0x300 && contains(kMarks, code); }
bool is_control(char32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7f;
  return contains(kControls, code);
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) return code > ' ' && code < 0x7f && !is_letter(code) && !is_number(code);
  return contains(kPunctuation, code);
}

bool is_ideograph(char32_t code) {
  constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                                   {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return contains(kIdeographs, code);
}

char32_t lower(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  const LowerRun* run = row_for(std::span<const LowerRun>(kLower), code, &LowerRun::first);
  if (!run || code > run->last || (code - run->first) % run->step != 0) return code;
  return static_cast<char32_t>(static_cast<int32_t>(code) + run->distance);
}

void append_without_marks(char32_t code, std::u32string& out) {
  constexpr char32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11a7, kVowelCount = 21,
                     kTailCount = 28;
  if (code >= kSyllables && code < kSyllables + 11172) {
    const char32_t index = code - kSyllables;
    out += kLeads + index / (kVowelCount * kTailCount);
    out += kVowels + index / kTailCount % kVowelCount;
    if (index % kTailCount != 0) out += kTails + index % kTailCount;
    return;
  }
  if (code < 0xc0) return void(out += code);
  const Single* single = row_for(std::span<const Single>(kSingle), code, &Single::code);
  if (single && single->code == code) return void(out += single->base);
  const Several* several = row_for(std::span<const Several>(kSeveral), code, &Several::code);
  if (several && several->code == code) {
    for (const char32_t base : {several->first, several->second, several->third}) {
      if (base != 0) out += base;
    }
  } else if (!is_mark(code)) {
    out += code;
  }
}

}  // namespace plugrad::io
