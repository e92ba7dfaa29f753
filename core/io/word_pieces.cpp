#include <core/io/quote.hpp>
#include <core/io/token_finder.hpp>
#include <core/io/unicode.hpp>
#include <core/io/word_piece_format.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace plugrad::io {
namespace {

[[noreturn]] void refuse_wordpiece(const std::string& what) { throw Error(Code::invalid, "[WordPieceTokenizer] " + what); }

// BERT's normalisation of one character.
void append_normal(char32_t code, const WordPieceOptions& options, std::u32string& out) {
  const bool kept_control = code == '\t' || code == '\n' || code == '\r';
  if (options.clean_text) {
    if (code == 0 || code == kReplacement || (is_control(code) && !kept_control)) return;
    if (is_space(code)) code = ' ';
  }
  const size_t start = out.size();
  const bool apart = options.split_ideographs && is_ideograph(code);
  if (apart) out += U' ';
  if (options.strip_accents.value_or(options.lowercase)) append_without_marks(code, out);
  else out += code;
  if (options.lowercase)
    std::transform(out.begin() + static_cast<ptrdiff_t>(start), out.end(), out.begin() + static_cast<ptrdiff_t>(start),
                   lower);
  if (apart) out += U' ';
}

// Calls on_word for the words of a text: the parts between white space, and each character of punctuation.
template <class OnWord> void each_word(std::u32string_view text, OnWord on_word) {
  size_t start = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const bool end = at == text.size(), mark = !end && is_punctuation(text[at]);
    if (!end && !mark && !is_space(text[at])) continue;
    if (at > start) on_word(text.substr(start, at - start));
    if (mark) on_word(text.substr(at, 1));
    start = at + 1;
  }
}

}  // namespace

struct WordPieceTokenizer::State {
  explicit State(WordPieceModel model) : options(std::move(model.options)), tokens(std::move(model.tokens)) {
    for (const std::string& token : tokens) {
      if (!ids.emplace(token, static_cast<int64_t>(ids.size())).second)
        refuse_wordpiece("the token " + quote(token) + " occurs twice");
      if (token.size() > TokenFinder::kLongest)
        refuse_wordpiece("the token " + quote(token) + " has " + std::to_string(token.size()) + " bytes, expected " +
                         std::to_string(TokenFinder::kLongest) + " at most");
      const int64_t id = static_cast<int64_t>(ids.size()) - 1;
      starting.add(token, id);
      if (token.starts_with(options.continuing)) inner.add(std::string_view(token).substr(options.continuing.size()), id);
    }
    unknown = special_id(options.unknown);
    first = special_id(options.first);
    last = special_id(options.last);
    std::vector<std::pair<std::string, int64_t>> wholes;
    for (const std::string& token : model.special) {
      if (const auto found = ids.find(token); found != ids.end()) wholes.emplace_back(*found);
    }
    finder = TokenFinder(wholes);
    special.resize(tokens.size());
    for (const auto& [token, id] : wholes) special[static_cast<size_t>(id)] = true;
  }

  int64_t special_id(const std::string& token) const {
    const auto found = ids.find(token);
    if (found == ids.end())
      refuse_wordpiece("the vocabulary of " + std::to_string(tokens.size()) + " tokens has no " + quote(token));
    return found->second;
  }

  // Repeatedly appends the longest piece at the start of the rest of the word; or appends the unknown token.
  void append_word(std::u32string_view word, std::vector<int64_t>& out) const {
    if (static_cast<int64_t>(word.size()) > options.longest_word) return out.push_back(unknown);
    std::string bytes;
    for (const char32_t code : word) append_utf8(code, bytes);
    const size_t before = out.size();
    for (size_t start = 0; start < bytes.size();) {
      const std::string_view rest = std::string_view(bytes).substr(start);
      const auto is_whole = [&](size_t end) { return end == rest.size() || (rest[end] & 0xc0) != 0x80; };
      const Prefixes::Match piece = (start ? inner : starting).longest(rest, is_whole);
      if (piece.id < 0) {
        out.resize(before);
        return out.push_back(unknown);
      }
      out.push_back(piece.id);
      start += piece.length;
    }
  }

  void append_text(std::string_view text, std::vector<int64_t>& out) const {
    std::u32string normal;
    for (size_t at = 0; at < text.size();) {
      const Character character = character_at(text, at);
      append_normal(character.code, options, normal);
      at += character.bytes;
    }
    each_word(normal, [&](std::u32string_view word) { append_word(word, out); });
  }

  WordPieceOptions options;
  std::vector<std::string> tokens;
  std::unordered_map<std::string, int64_t> ids;
  std::vector<bool> special;
  Prefixes starting, inner;  // the first pieces of words, and the continuing pieces without options.continuing
  int64_t unknown = 0, first = 0, last = 0;
  TokenFinder finder;
};

WordPieceTokenizer::WordPieceTokenizer(const std::string& path) {
  try {
    state_ = std::make_unique<State>(read_word_pieces(path));
  } catch (const Error& error) {
    if (error.code() == Code::io_error) throw;
    throw Error(Code::io_error, "[" + path + "] is not a WordPiece vocabulary: " + error.what());
  }
}
WordPieceTokenizer::WordPieceTokenizer(const std::vector<std::string>& tokens, const WordPieceOptions& options)
    : state_(std::make_unique<State>(
          WordPieceModel{tokens, {options.unknown, options.first, options.last, "[PAD]", "[MASK]"}, options})) {}
WordPieceTokenizer::~WordPieceTokenizer() = default;
WordPieceTokenizer::WordPieceTokenizer(WordPieceTokenizer&&) noexcept = default;
WordPieceTokenizer& WordPieceTokenizer::operator=(WordPieceTokenizer&&) noexcept = default;

int64_t WordPieceTokenizer::size() const { return static_cast<int64_t>(state_->tokens.size()); }
const WordPieceOptions& WordPieceTokenizer::options() const { return state_->options; }

std::vector<int64_t> WordPieceTokenizer::encode(std::string_view text, std::optional<int64_t> max_length) const {
  if (!max_length) max_length = state_->options.max_length;
  if (max_length && *max_length < 2) {
    refuse_wordpiece("max_length " + std::to_string(*max_length) + " has no room for " + state_->options.first + " and " +
                     state_->options.last + ": 2 or more expected");
  }
  std::vector<int64_t> ids = {state_->first};
  state_->finder.split(
      text, [&](std::string_view part) { state_->append_text(part, ids); }, [&](int64_t id) { ids.push_back(id); });
  if (max_length && static_cast<int64_t>(ids.size()) >= *max_length) ids.resize(static_cast<size_t>(*max_length - 1));
  ids.push_back(state_->last);
  return ids;
}

const std::string& WordPieceTokenizer::token(int64_t id) const {
  if (id >= 0 && id < size()) return state_->tokens[static_cast<size_t>(id)];
  throw Error(Code::index_error, "[WordPieceTokenizer] the token " + std::to_string(id) + " does not exist: there are " +
                                     std::to_string(size()));
}

std::string WordPieceTokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  std::string text;
  for (const int64_t id : ids) {
    const std::string& piece = token(id);
    if (skip_special && state_->special[static_cast<size_t>(id)]) continue;
    const bool joined = !state_->options.continuing.empty() && piece.starts_with(state_->options.continuing);
    if (!text.empty() && !joined) text += ' ';
    text += joined ? piece.substr(state_->options.continuing.size()) : piece;
  }
  return take_characters(text, true);
}

std::optional<int64_t> WordPieceTokenizer::id_of(const std::string& token) const {
  const auto found = state_->ids.find(token);
  return found == state_->ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace plugrad::io
