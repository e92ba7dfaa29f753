#include <plugrad/io/byte_pairs.hpp>

#include <core/io/quote.hpp>
#include <core/io/token_finder.hpp>
#include <core/io/unicode.hpp>
#include <core/io/words.hpp>
#include <plugrad/runtime/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>

namespace plugrad::io {
namespace {

// GPT-2 writes the printable bytes of Latin-1 as themselves, and the remaining bytes as the characters from U+0100 on.
bool writes_itself(int byte) { return (byte > 32 && byte < 127) || (byte > 160 && byte != 173); }

// Returns the byte for each code point below 0x144, or -1.
std::array<int, 0x144> make_bytes() {
  std::array<int, 0x144> bytes;
  bytes.fill(-1);
  size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) bytes[writes_itself(byte) ? static_cast<size_t>(byte) : next++] = byte;
  return bytes;
}

// Returns the bytes of a token; a token with further characters stands for itself.
std::string bytes_of(const std::string& token) {
  static const std::array<int, 0x144> bytes = make_bytes();
  std::string out;
  for (size_t at = 0; at < token.size();) {
    const Character character = character_at(token, at);
    if (!character.valid || character.code >= bytes.size() || bytes[character.code] < 0) return token;
    out += static_cast<char>(bytes[character.code]);
    at += character.bytes;
  }
  return out;
}

struct Merge {
  uint32_t rank, id;
};
using Merges = std::unordered_map<uint64_t, Merge>;  // by both ids

uint64_t pair_of(int64_t left, int64_t right) { return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right); }

// The tokens of a word; at first they are single bytes. The pair of the lowest rank merges first, and of equal pairs the
// leftmost.
class Word {
 public:
  explicit Word(const Merges& merges) : merges_(merges) {}

  void append(int64_t id) { symbols_.push_back({id, symbols_.size() - 1, symbols_.size() + 1}); }
  void merge(std::vector<int64_t>& out) {
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) consider(i);
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      Symbol& left = symbols_[best.at];
      if (left.id == best.left && left.next < symbols_.size() && symbols_[left.next].id == best.right) join(best);
    }
    for (const Symbol& symbol : symbols_) {
      if (symbol.id >= 0) out.push_back(symbol.id);
    }
  }

 private:
  struct Symbol {
    int64_t id;  // -1 once merged into the symbol before
    size_t before, next;
  };
  struct Candidate {
    uint32_t rank;
    size_t at;
    int64_t left, right, joined;
    bool operator<(const Candidate& other) const { return std::pair(rank, at) > std::pair(other.rank, other.at); }
  };

  void consider(size_t at) {
    const size_t next = symbols_[at].next;
    if (next >= symbols_.size()) return;
    const auto found = merges_.find(pair_of(symbols_[at].id, symbols_[next].id));
    if (found != merges_.end()) {
      candidates_.push({found->second.rank, at, symbols_[at].id, symbols_[next].id, int64_t{found->second.id}});
    }
  }
  void join(const Candidate& pair) {
    Symbol& left = symbols_[pair.at];
    Symbol& right = symbols_[left.next];
    left.id = pair.joined;
    left.next = right.next;
    right.id = -1;
    if (left.next < symbols_.size()) symbols_[left.next].before = pair.at;
    if (left.before < symbols_.size()) consider(left.before);
    consider(pair.at);
  }

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> candidates_;
};

[[noreturn]] void refuse_bpe(const std::string& what) { throw Error(Code::invalid, "[BytePairTokenizer] " + what); }

// Returns whether the file's model makes each digit a word of its own.
bool single_digits_of(const GgufFile& file) {
  const std::string pre = file.has("tokenizer.ggml.pre") ? file.text("tokenizer.ggml.pre") : "";
  for (const char* name : {"smollm", "starcoder", "refact", "command-r", "codeshell"}) {
    if (pre == name) return true;
  }
  for (const char* name : {"gpt-2", "phi-2", "mpt", "olmo"}) {
    if (pre == name) return false;
  }
  refuse_bpe("tokenizer.ggml.pre is " + quote(pre) +
             ", a way to split words that is not implemented; it can be smollm, starcoder, " +
             "refact, command-r, codeshell, gpt-2, phi-2, mpt or olmo");
}

BytePairVocabulary vocabulary_of(const GgufFile& file) {
  if (file.text("tokenizer.ggml.model") != "gpt2") {
    refuse_bpe("tokenizer.ggml.model is " + quote(file.text("tokenizer.ggml.model")) + ", expected gpt2, byte-level BPE");
  }
  BytePairVocabulary vocabulary = {
      file.texts("tokenizer.ggml.tokens"), file.texts("tokenizer.ggml.merges"), {}, single_digits_of(file)};
  if (!file.has("tokenizer.ggml.token_type")) return vocabulary;
  const auto* types = std::get_if<std::vector<int64_t>>(&file.value("tokenizer.ggml.token_type").value);
  if (!types || types->size() != vocabulary.tokens.size())
    refuse_bpe("tokenizer.ggml.token_type is not one number for each token");
  constexpr int64_t kControl = 3, kUserDefined = 4;
  for (size_t i = 0; i < types->size(); ++i) {
    const int64_t type = (*types)[i];
    if (type == kControl || type == kUserDefined) vocabulary.special.push_back(static_cast<int64_t>(i));
  }
  return vocabulary;
}

}  // namespace

struct BytePairTokenizer::State {
  explicit State(const BytePairVocabulary& given) : single_digits(given.single_digits), special(given.tokens.size()) {
    if (given.tokens.size() > std::numeric_limits<int32_t>::max()) refuse_bpe("there are 2^31 tokens or more");
    add_tokens(given);
    add_merges(given.merges);
    single.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids.find(std::string(1, static_cast<char>(byte)));
      if (found != ids.end() && !special[static_cast<size_t>(found->second)])
        single[static_cast<size_t>(byte)] = found->second;
    }
  }

  void add_tokens(const BytePairVocabulary& given) {
    std::vector<std::pair<std::string, int64_t>> wholes;
    for (const int64_t id : given.special) {
      if (id < 0 || id >= static_cast<int64_t>(given.tokens.size()))
        refuse_bpe("the special token " + std::to_string(id) + " does not exist");
      special[static_cast<size_t>(id)] = true;
      const std::string& token = given.tokens[static_cast<size_t>(id)];
      if (token.size() > TokenFinder::kLongest)
        refuse_bpe("the special token " + quote(token) + " has " + std::to_string(token.size()) + " bytes, expected " +
                   std::to_string(TokenFinder::kLongest) + " at most");
      wholes.emplace_back(token, id);
    }
    for (const std::string& token : given.tokens) {
      bytes.push_back(special[bytes.size()] ? token : bytes_of(token));
      // Tokens with characters outside GPT-2's 256 may have the same bytes as another token: the first token counts.
      const auto [found, added] = ids.try_emplace(bytes.back(), static_cast<int64_t>(bytes.size()) - 1);
      if (!added && given.tokens[static_cast<size_t>(found->second)] == token)
        refuse_bpe("the token " + quote(token) + " occurs twice");
    }
    finder = TokenFinder(wholes);
  }

  void add_merges(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t blank = text.find(' ', 1);
      const auto part = [&](const std::string& token) {
        const auto found = ids.find(bytes_of(token));
        return found == ids.end() ? -1 : found->second;
      };
      const int64_t left = blank == std::string::npos ? -1 : part(text.substr(0, blank));
      const int64_t right = left < 0 ? -1 : part(text.substr(blank + 1));
      const int64_t joined = right < 0 ? -1 : part(text.substr(0, blank) + text.substr(blank + 1));
      if (joined < 0) refuse_bpe("the merge " + quote(text) + " is not of two tokens that give a third one");
      merges.try_emplace(pair_of(left, right), Merge{static_cast<uint32_t>(merges.size()), static_cast<uint32_t>(joined)});
    }
  }

  void encode(std::string_view text, std::vector<int64_t>& out) const {
    for (const std::string_view each : split_words(text, single_digits)) {
      Word word(merges);
      for (const char byte : each) {
        const int64_t id = single[static_cast<uint8_t>(byte)];
        if (id >= 0) word.append(id);
      }
      word.merge(out);
    }
  }

  bool single_digits;
  std::vector<bool> special;
  std::vector<std::string> bytes;  // by id
  std::unordered_map<std::string, int64_t> ids;
  std::array<int64_t, 256> single;  // the ids of single bytes, or -1
  Merges merges;
  TokenFinder finder;
};

BytePairTokenizer::BytePairTokenizer(const BytePairVocabulary& vocabulary) : state_(std::make_unique<State>(vocabulary)) {}
BytePairTokenizer::BytePairTokenizer(const GgufFile& file) : BytePairTokenizer(vocabulary_of(file)) {}
BytePairTokenizer::~BytePairTokenizer() = default;
BytePairTokenizer::BytePairTokenizer(BytePairTokenizer&&) noexcept = default;
BytePairTokenizer& BytePairTokenizer::operator=(BytePairTokenizer&&) noexcept = default;

int64_t BytePairTokenizer::size() const { return static_cast<int64_t>(state_->bytes.size()); }

std::vector<int64_t> BytePairTokenizer::encode(std::string_view text, bool special) const {
  std::vector<int64_t> ids;
  if (!special) {
    state_->encode(text, ids);
    return ids;
  }
  state_->finder.split(
      text, [&](std::string_view part) { state_->encode(part, ids); }, [&](int64_t id) { ids.push_back(id); });
  return ids;
}

const std::string& BytePairTokenizer::bytes(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(Code::index_error, "[BytePairTokenizer] the token " + std::to_string(id) + " does not exist: there are " +
                                       std::to_string(size()));
  }
  return state_->bytes[static_cast<size_t>(id)];
}

std::string BytePairTokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  std::string text;
  for (const int64_t id : ids) {
    const std::string& part = bytes(id);
    if (!skip_special || !is_special(id)) text += part;
  }
  return take_characters(text, true);
}

std::optional<int64_t> BytePairTokenizer::id_of(const std::string& text) const {
  const auto found = state_->ids.find(text);
  return found == state_->ids.end() ? std::nullopt : std::optional(found->second);
}

bool BytePairTokenizer::is_special(int64_t id) const {
  return id >= 0 && id < size() && state_->special[static_cast<size_t>(id)];
}

std::string TextStream::push(std::string_view bytes) {
  pending_ += bytes;
  return take_characters(pending_, false);
}

std::string TextStream::finish() { return take_characters(pending_, true); }

}  // namespace plugrad::io
