// WordPiece, the tokenizer of BERT and of models for sentences (Devlin et al., 2018).
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io {

// The treatment of a text, by default as in BERT's uncased models.
struct WordPieceOptions {
  bool lowercase = true;
  std::optional<bool> strip_accents;            // by default as lowercase
  bool clean_text = true;                       // drops control characters; white space becomes a blank
  bool split_ideographs = true;                 // each Chinese character is a word
  std::string unknown = "[UNK]";                // for a word without pieces, or too long a word
  std::string first = "[CLS]", last = "[SEP]";  // at the ends of a text
  std::string continuing = "##";                // before the pieces inside a word
  int64_t longest_word = 100;                   // in characters
  std::optional<int64_t> max_length;            // tokens of a text with its ends; further tokens are cut off
};

// Const methods may be called by several threads at once.
class PLUGRAD_API WordPieceTokenizer {
 public:
  // Reads a file: one token a line (vocab.txt, with BERT's options for uncased models), or the tokenizer.json of the library
  // tokenizers, with its options. Throws Error (io_error) for a missing file, for a file of neither format, for a token that
  // occurs twice, for a missing special token, and unless the ids are 0, 1, 2 ...
  explicit WordPieceTokenizer(const std::string& path);
  // The tokens by id. Throws Error (invalid) for the same faults.
  explicit WordPieceTokenizer(const std::vector<std::string>& tokens, const WordPieceOptions& options = {});
  ~WordPieceTokenizer();
  WordPieceTokenizer(WordPieceTokenizer&&) noexcept;
  WordPieceTokenizer& operator=(WordPieceTokenizer&&) noexcept;

  int64_t size() const;
  const WordPieceOptions& options() const;
  // Returns the ids of a text between the ids of [CLS] and [SEP]. Texts such as [MASK] become their token. max_length counts
  // both ends and replaces the file's max_length. Throws Error (invalid) for a max_length below 2.
  std::vector<int64_t> encode(std::string_view text, std::optional<int64_t> max_length = {}) const;
  // Returns the text of a token. Throws Error (index_error) for an id out of range.
  const std::string& token(int64_t id) const;
  // Returns the pieces joined to words, with blanks between them, without the special tokens if asked to.
  std::string decode(std::span<const int64_t> ids, bool skip_special = true) const;
  std::optional<int64_t> id_of(const std::string& token) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace plugrad::io
