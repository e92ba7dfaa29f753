#include <core/io/words.hpp>

#include <core/io/unicode.hpp>

namespace plugrad::io {
namespace {

enum class Kind { letter, number, space, other };

Kind kind_of(char32_t code) {
  return is_letter(code) ? Kind::letter : is_space(code) ? Kind::space : is_number(code) ? Kind::number : Kind::other;
}

// Splits one part of a text.
class Splitter {
 public:
  Splitter(std::string_view text, std::vector<std::string_view>& words) : text_(text), words_(words) {}

  void split() {
    while (at_ < text_.size()) take(word());
  }

 private:
  Kind kind(size_t at) const { return kind_of(character_at(text_, at).code); }
  void take(size_t end) {
    words_.push_back(text_.substr(at_, end - at_));
    at_ = end;
  }
  // Returns the end of the word that begins here.
  size_t word() const {
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text_.substr(at_).starts_with(ending)) return at_ + ending.size();
    }
    const size_t start = text_[at_] == ' ' && at_ + 1 < text_.size() ? at_ + 1 : at_;
    const Kind first = kind(start);
    return first == Kind::space ? spaces() : run(start, first).end;
  }
  struct Run {
    size_t end, last;  // its end, and the start of its last character
  };
  Run run(size_t at, Kind wanted) const {
    size_t last = at;
    while (at < text_.size()) {
      const Character character = character_at(text_, at);
      if (kind_of(character.code) != wanted) break;
      last = at;
      at += character.bytes;
    }
    return {at, last};
  }
  // A run of spaces leaves its last space to the next word.
  size_t spaces() const {
    const Run all = run(at_, Kind::space);
    return all.end == text_.size() || all.last == at_ ? all.end : all.last;
  }

  std::string_view text_;
  std::vector<std::string_view>& words_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::string_view> split_words(std::string_view text, bool single_digits) {
  std::vector<std::string_view> words;
  size_t start = 0;
  for (size_t at = 0; single_digits && at < text.size();) {
    const Character character = character_at(text, at);
    if (is_number(character.code)) {
      Splitter(text.substr(start, at - start), words).split();
      words.push_back(text.substr(at, character.bytes));
      start = at + character.bytes;
    }
    at += character.bytes;
  }
  Splitter(text.substr(start), words).split();
  return words;
}

}  // namespace plugrad::io
