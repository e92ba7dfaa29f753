// The files of WordPiece tokenizers.
#pragma once
#include <plugrad/io/word_pieces.hpp>

namespace plugrad::io {

struct WordPieceModel {
  std::vector<std::string> tokens;   // by id
  std::vector<std::string> special;  // tokens that a text may contain as a whole
  WordPieceOptions options;
};

// Reads vocab.txt or tokenizer.json. Throws Error (io_error).
WordPieceModel read_word_pieces(const std::string& path);

}  // namespace plugrad::io
