// Byte-level BPE, the tokenizer of GPT-2 and many models after it. Sennrich, Haddow and Birch, 2016; Radford et al., 2019.
#pragma once
#include <plugrad/io/gguf.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io {

// A tokenizer as described by a model's file.
struct BytePairVocabulary {
  std::vector<std::string>
      tokens;  // by id; bytes are written as GPT-2's 256 printable characters, special tokens as they are
  std::vector<std::string> merges;  // "left right", the most frequent first
  std::vector<int64_t> special;     // ids of tokens found by encode as a whole, such as <|im_start|>
  bool single_digits = false;       // whether each digit is a word of its own
};

// Const methods may be called by several threads at once.
class PLUGRAD_API BytePairTokenizer {
 public:
  // Throws Error (invalid) for a token that occurs twice, for a merge unless its two parts and their union are tokens, and
  // for ids out of range.
  explicit BytePairTokenizer(const BytePairVocabulary& vocabulary);
  // Takes the tokenizer of a language model: tokenizer.ggml.model must be "gpt2", and tokenizer.ggml.pre an implemented way
  // to split words (smollm, starcoder, refact, command-r, codeshell, gpt-2, phi-2, mpt, olmo). Throws as the constructor
  // above does, and Error (io_error) where the file has no tokenizer.
  explicit BytePairTokenizer(const GgufFile& file);
  ~BytePairTokenizer();
  BytePairTokenizer(BytePairTokenizer&&) noexcept;
  BytePairTokenizer& operator=(BytePairTokenizer&&) noexcept;

  // Returns the number of tokens.
  int64_t size() const;
  // Returns the ids of a text. With `special`, texts such as <|im_start|> become their token; otherwise they are ordinary
  // text. It adds no tokens at the ends. A byte without a token is left out.
  std::vector<int64_t> encode(std::string_view text, bool special = true) const;
  // Returns the bytes of a token; they may be a part of a character. Throws Error (index_error) for an id out of range.
  const std::string& bytes(int64_t id) const;
  // Returns the text of tokens, with U+FFFD in place of bytes that are not UTF-8. Throws as bytes does.
  std::string decode(std::span<const int64_t> ids, bool skip_special = false) const;
  // Returns the id of a token by its text ("<|im_end|>", " the"), or nothing.
  std::optional<int64_t> id_of(const std::string& text) const;
  bool is_special(int64_t id) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// Joins the bytes of successive tokens, and returns whole characters. Not thread-safe.
class PLUGRAD_API TextStream {
 public:
  // Returns the text completed by these bytes; bytes that are not UTF-8 become U+FFFD.
  std::string push(std::string_view bytes);
  // Ends the text: returns U+FFFD for the start of an incomplete character.
  std::string finish();

 private:
  std::string pending_;  // the start of a character
};

}  // namespace plugrad::io
