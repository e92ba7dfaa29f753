#include <core/io/word_piece_format.hpp>

#include <core/io/opened_file.hpp>
#include <core/io/quote.hpp>
#include <core/io/strict_json.hpp>

#include <algorithm>

namespace plugrad::io {
namespace {

using Json = nlohmann::json;

// Tokens of BERT's vocabularies that texts may contain as a whole.
constexpr const char* kSpecial[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

class JsonReader {
 public:
  explicit JsonReader(const OpenedFile& file) : file_(file) {}

  WordPieceModel read(const std::string& text) const {
    constexpr int kDepth = 8;
    const Document document = parse_strictly(text, kDepth, [&](const std::string& what) { fail(what); });
    const Json& root = document.root();
    const Json& model = part(root, "model");
    if (text_of(model, "type", "WordPiece") != "WordPiece") {
      fail("holds a model of type " + quote(text_of(model, "type", "")) + ", expected WordPiece");
    }
    WordPieceModel found;
    read_options(root, model, found.options);
    std::vector<std::pair<std::string, int64_t>> tokens;
    for (const auto& [token, id] : part(model, "vocab").items()) tokens.emplace_back(token, id_of(token, id));
    read_added(root, tokens, found.special);
    found.tokens = in_order(tokens);
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    file_.fail("is not the tokenizer.json of a WordPiece model: it " + what);
  }

  const Json& part(const Json& object, const char* key) const {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end() || !found->is_object()) fail(std::string("has no ") + key);
    return *found;
  }
  // A member that may be missing or null.
  template <class T, class Is> T member(const Json& object, const char* key, T otherwise, Is is, const char* kind) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return otherwise;
    if (!is(*found)) fail(std::string("has a ") + key + " that is not " + kind);
    return found->template get<T>();
  }
  std::string text_of(const Json& object, const char* key, const std::string& otherwise) const {
    return member(object, key, otherwise, [](const Json& value) { return value.is_string(); }, "a text");
  }
  bool flag(const Json& object, const char* key, bool otherwise) const {
    return member(object, key, otherwise, [](const Json& value) { return value.is_boolean(); }, "true or false");
  }
  int64_t number(const Json& object, const char* key, int64_t otherwise) const {
    const auto whole = [](const Json& value) { return value.is_number_unsigned() && value.get<uint64_t>() < (1u << 30); };
    return member(object, key, otherwise, whole, "a whole number below 2^30");
  }
  int64_t id_of(const std::string& token, const Json& id) const {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= (1u << 30)) fail("gives the token " + quote(token) + " no id");
    return id.get<int64_t>();
  }

  void read_options(const Json& root, const Json& model, WordPieceOptions& options) const {
    const Json& normalizer = part(root, "normalizer");
    if (text_of(normalizer, "type", "") != "BertNormalizer") {
      fail("normalises texts by " + quote(text_of(normalizer, "type", "")) + ", expected BertNormalizer");
    }
    options.lowercase = flag(normalizer, "lowercase", true);
    options.strip_accents = flag(normalizer, "strip_accents", options.lowercase);
    options.clean_text = flag(normalizer, "clean_text", true);
    options.split_ideographs = flag(normalizer, "handle_chinese_chars", true);
    options.unknown = text_of(model, "unk_token", options.unknown);
    options.continuing = text_of(model, "continuing_subword_prefix", options.continuing);
    options.longest_word = number(model, "max_input_chars_per_word", options.longest_word);
    const auto truncation = root.find("truncation");
    if (truncation != root.end() && truncation->is_object()) options.max_length = number(*truncation, "max_length", 512);
  }

  void read_added(const Json& root, std::vector<std::pair<std::string, int64_t>>& tokens,
                  std::vector<std::string>& special) const {
    const auto added = root.find("added_tokens");
    if (added == root.end() || !added->is_array()) return;
    for (const Json& each : *added) {
      if (!each.is_object() || !each.contains("id")) fail("has an added token without id");
      special.push_back(text_of(each, "content", ""));
      tokens.emplace_back(special.back(), id_of(special.back(), each["id"]));
    }
  }

  // An added token may also be in the vocabulary.
  std::vector<std::string> in_order(const std::vector<std::pair<std::string, int64_t>>& tokens) const {
    std::vector<std::string> ordered(tokens.size());
    std::vector<bool> seen(tokens.size());
    size_t count = 0;
    for (const auto& [token, id] : tokens) {
      const size_t at = static_cast<size_t>(id);
      if (at >= tokens.size())
        fail("has the id " + std::to_string(id) + ", but only " + std::to_string(tokens.size()) + " tokens");
      if (seen[at] && ordered[at] != token) fail("has the id " + std::to_string(id) + " twice");
      count += !seen[at];
      seen[at] = true;
      ordered[at] = token;
    }
    for (size_t at = 0; at < count; ++at) {
      if (!seen[at]) fail("has no token of the id " + std::to_string(at));
    }
    ordered.resize(count);
    return ordered;
  }

  const OpenedFile& file_;
};

// One token a line; white space at the end of a line does not belong to it.
WordPieceModel read_lines(const std::string& text) {
  WordPieceModel model;
  model.special.assign(std::begin(kSpecial), std::end(kSpecial));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    size_t last = end;
    while (last > at && (text[last - 1] == '\r' || text[last - 1] == ' ' || text[last - 1] == '\t')) --last;
    model.tokens.push_back(text.substr(at, last - at));
    at = end + 1;
  }
  return model;
}

}  // namespace

WordPieceModel read_word_pieces(const std::string& path) {
  const OpenedFile file(path, "expected the vocab.txt or the tokenizer.json of a model");
  constexpr uint64_t kMostBytes = uint64_t{1} << 28;
  if (file.size() > kMostBytes) file.fail("is not a vocabulary: it has more than 256 MiB");
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  return text.starts_with('{') ? JsonReader(file).read(text) : read_lines(text);
}

}  // namespace plugrad::io
