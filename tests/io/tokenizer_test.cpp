#include <plugrad/io/byte_pairs.hpp>
#include <plugrad/io/characters.hpp>
#include <plugrad/io/word_pieces.hpp>

#include <tests/io/gguf_bytes.hpp>
#include <tests/io/mutations.hpp>
#include <tests/io/scratch.hpp>

#include <gtest/gtest.h>

#include <set>

namespace plugrad::test {
namespace {

using io::BytePairTokenizer;
using io::WordPieceTokenizer;
using Ids = std::vector<int64_t>;

// GPT-2's character for a byte.
std::string character_of(int byte) {
  int code = byte, others = 0x100;
  for (int each = 0; each < 256; ++each) {
    const bool itself = (each > 32 && each < 127) || (each > 160 && each != 173);
    if (each == byte) code = itself ? each : others;
    others += !itself;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}
std::string written(const std::string& text) {
  std::string out;
  for (const char byte : text) out += character_of(static_cast<uint8_t>(byte));
  return out;
}

// A vocabulary of all bytes, of the words' prefixes, each merged from a shorter prefix and a byte, and of "<|end|>".
io::BytePairVocabulary vocabulary_of(const std::vector<std::string>& words) {
  io::BytePairVocabulary vocabulary;
  std::set<std::string> known;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.push_back(character_of(byte));
  for (const std::string& word : words) {
    for (size_t size = 2; size <= word.size(); ++size) {
      if (!known.insert(word.substr(0, size)).second) continue;
      vocabulary.tokens.push_back(written(word.substr(0, size)));
      vocabulary.merges.push_back(written(word.substr(0, size - 1)) + " " + written(word.substr(size - 1, 1)));
    }
  }
  vocabulary.special.push_back(static_cast<int64_t>(vocabulary.tokens.size()));
  vocabulary.tokens.push_back("<|end|>");
  return vocabulary;
}

struct WordsRow {
  const char* text;
  std::vector<std::string> words;
  bool single_digits = false;
};

// Texts, and the words into which Python's package tokenizers splits them by GPT-2's expressions.
const WordsRow kWords[] = {
    {"hello world", {"hello", " world"}},
    {"it's we're I'LL", {"it", "'s", " we", "'re", " I", "'", "LL"}},
    {"'tis 'sx", {"'t", "is", " '", "sx"}},
    {"a  b   c", {"a", " ", " b", "  ", " c"}},
    {"end  ", {"end", "  "}},
    {"a\n\nb\t c", {"a", "\n", "\n", "b", "\t", " c"}},
    {"x \n y", {"x", " \n", " y"}},
    {"caf\xc3\xa9 \xe6\x9d\xb1\xe4\xba\xac!", {"caf\xc3\xa9", " \xe6\x9d\xb1\xe4\xba\xac", "!"}},
    {"a\xc2\xa0"
     "b",
     {"a", "\xc2\xa0", "b"}},
    {"v1.25, 300", {"v", "1", ".", "25", ",", " 300"}},
    {"v1.25, 300", {"v", "1", ".", "2", "5", ",", " ", "3", "0", "0"}, true},
    {"\xc2\xbd\xd9\xa3", {"\xc2\xbd", "\xd9\xa3"}, true},
    {"a \xf0\x9f\x99\x82!", {"a", " \xf0\x9f\x99\x82!"}},
    {"", {}},
};

TEST(BytePairTokenizer, WordsEndWhereGpt2EndsThem) {
  for (const WordsRow& row : kWords) {
    SCOPED_TRACE(row.text);
    // Each pair of adjacent words could also merge, if the pair were one word.
    io::BytePairVocabulary vocabulary = vocabulary_of(row.words);
    std::set<std::string> known(vocabulary.tokens.begin(), vocabulary.tokens.end());
    for (size_t i = 0; i + 1 < row.words.size(); ++i) {
      const std::string left = written(row.words[i]), right = written(row.words[i + 1]);
      if (known.insert(left + right).second) vocabulary.tokens.push_back(left + right);
      vocabulary.merges.push_back(left + " " + right);
    }
    vocabulary.single_digits = row.single_digits;
    const BytePairTokenizer tokenizer(vocabulary);
    std::vector<std::string> words;
    for (const int64_t id : tokenizer.encode(row.text)) words.push_back(tokenizer.bytes(id));
    EXPECT_EQ(words, row.words);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(row.text)), row.text);
  }
}

TEST(BytePairTokenizer, TheEarliestMergeComesFirstAndThenTheLeftmost) {
  io::BytePairVocabulary vocabulary = vocabulary_of({});
  for (const char* token : {"bc", "ab", "abc", "aa"}) vocabulary.tokens.push_back(token);
  vocabulary.merges = {"b c", "a b", "a bc", "a a"};
  const BytePairTokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("abc"), Ids{259});
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{258, 258}));
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{260, 'a'}));
  EXPECT_EQ(tokenizer.encode(std::string(30001, 'a')).size(), 15001u);
}

TEST(BytePairTokenizer, SpecialTokensAreWholesOnRequest) {
  const BytePairTokenizer tokenizer(vocabulary_of({"<|"}));
  const int64_t end = tokenizer.size() - 1;
  EXPECT_EQ(tokenizer.encode("a<|end|>b<|end|"), (Ids{'a', end, 'b', 256, 'e', 'n', 'd', '|'}));
  EXPECT_EQ(tokenizer.encode("<|end|>", false), (Ids{256, 'e', 'n', 'd', '|', '>'}));
  EXPECT_EQ(tokenizer.decode(Ids{'a', end}), "a<|end|>");
  EXPECT_EQ(tokenizer.decode(Ids{'a', end}, true), "a");
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_FALSE(tokenizer.is_special('a') || tokenizer.is_special(-1) || tokenizer.is_special(end + 1));
  EXPECT_EQ(tokenizer.id_of("<|end|>"), end);
  EXPECT_EQ(tokenizer.id_of("absent"), std::nullopt);
  EXPECT_THROW(tokenizer.decode(Ids{end + 1}), Error);
  EXPECT_THROW(tokenizer.bytes(-1), Error);
}

TEST(TextStream, PartsOfCharactersWait) {
  io::TextStream stream;
  EXPECT_EQ(stream.push("a\xe2\x82"), "a");
  EXPECT_EQ(stream.push("\xac\xf0\x9f"), "\xe2\x82\xac");
  EXPECT_EQ(stream.push("\x99"), "");
  EXPECT_EQ(stream.push("\x82!"), "\xf0\x9f\x99\x82!");
  EXPECT_EQ(stream.push("\xff\xc3"), "\xef\xbf\xbd");
  EXPECT_EQ(stream.push("x\xe0\x80"), "\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(stream.push("\xf0\x9f"), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.finish(), "");
}

std::vector<std::string> entries_of(const io::BytePairVocabulary& vocabulary, const std::string& pre) {
  std::string types;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) types += little(int32_t{i + 1 == vocabulary.tokens.size() ? 3 : 1});
  return {gguf_entry("tokenizer.ggml.model", 8, gguf_text("gpt2")), gguf_entry("tokenizer.ggml.pre", 8, gguf_text(pre)),
          gguf_entry("tokenizer.ggml.tokens", 9, gguf_texts(vocabulary.tokens)),
          gguf_entry("tokenizer.ggml.merges", 9, gguf_texts(vocabulary.merges)),
          gguf_entry("tokenizer.ggml.token_type", 9, gguf_array(5, vocabulary.tokens.size(), types))};
}

TEST(BytePairTokenizer, AModelsFileHasAllOfIt) {
  const Scratch scratch;
  const io::BytePairVocabulary vocabulary = vocabulary_of({"12", "ab"});
  const BytePairTokenizer smollm(io::GgufFile(scratch.write("a", gguf_file(entries_of(vocabulary, "smollm"), {}, ""))));
  EXPECT_EQ(smollm.encode("ab12<|end|>"), (Ids{257, '1', '2', 258}));
  const BytePairTokenizer gpt2(io::GgufFile(scratch.write("a", gguf_file(entries_of(vocabulary, "gpt-2"), {}, ""))));
  EXPECT_EQ(gpt2.encode("ab12<|end|>"), (Ids{257, 256, 258}));
  const io::GgufFile other(scratch.write("b", gguf_file(entries_of(vocabulary, "llama-bpe"), {}, "")));
  EXPECT_THROW(BytePairTokenizer{other}, Error);
  const io::GgufFile none(scratch.write("c", gguf_file({}, {}, "")));
  EXPECT_THROW(BytePairTokenizer{none}, Error);
}

TEST(BytePairTokenizer, InconsistentVocabulariesAreRefused) {
  const auto changed = [](auto change) {
    io::BytePairVocabulary vocabulary = vocabulary_of({"ab"});
    change(vocabulary);
    return vocabulary;
  };
  EXPECT_NO_THROW(BytePairTokenizer{changed([](auto&) {})});
  EXPECT_THROW(BytePairTokenizer{changed([](auto& v) { v.tokens.push_back("ab"); })}, Error);
  EXPECT_THROW(BytePairTokenizer{changed([](auto& v) { v.special.push_back(9999); })}, Error);
  EXPECT_THROW(BytePairTokenizer{changed([](auto& v) { v.special.push_back(-1); })}, Error);
  for (const char* merge : {"", " ", "ab", "a c", "a  b", "x y", "ab "}) {
    EXPECT_THROW(BytePairTokenizer{changed([&](auto& v) { v.merges.push_back(merge); })}, Error) << merge;
  }
}

const std::vector<std::string> kPieces = {
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un",           "##aff", "##able",
    "hello", "cafe",  "!",     "'",     "s",      "\xe6\x9d\xb1", "##s",   "\xe1\x84\x80\xe1\x85\xa1"};

struct PiecesRow {
  const char* text;
  Ids ids;  // between [CLS] and [SEP]
};

TEST(WordPieceTokenizer, TextsBecomeTheLongestPieces) {
  const WordPieceTokenizer tokenizer(kPieces);
  const PiecesRow rows[] = {
      {"", {}},
      {"  Hello\t\nHELLO ", {8, 8}},
      {"unaffable", {5, 6, 7}},
      {"unknown", {1}},
      {"unaffablex hello", {1, 8}},
      {"CAF\xc3\x89 cafe\xcc\x81", {9, 9}},
      {"hello!!'s", {8, 10, 10, 11, 12}},
      {"hello\xe6\x9d\xb1hello", {8, 13, 8}},
      {"he\xc2\xadllo\x01 \xef\xbf\xbd", {8}},
      {"hello\xc2\xa0hello", {8, 8}},
      {"\xea\xb0\x80", {15}},
      {"a[MASK]hello[SEP]", {1, 4, 8, 3}},
      {"[mask]", {1, 1, 1}},
      {"\xff"
       "hello",
       {8}},
  };
  for (const PiecesRow& row : rows) {
    Ids expected = {2};
    expected.insert(expected.end(), row.ids.begin(), row.ids.end());
    expected.push_back(3);
    EXPECT_EQ(tokenizer.encode(row.text), expected) << row.text;
  }
  EXPECT_EQ(tokenizer.encode(std::string(100, 'u')), (Ids{2, 1, 3}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("unaffable hello [MASK]!")), "unaffable hello !");
  EXPECT_EQ(tokenizer.decode(Ids{2, 8}, false), "[CLS] hello");
}

TEST(WordPieceTokenizer, LongTextsAreCutAndLongWordsAreUnknown) {
  io::WordPieceOptions options;
  options.max_length = 4;
  options.longest_word = 8;
  const WordPieceTokenizer tokenizer(kPieces, options);
  EXPECT_EQ(tokenizer.encode("hello hello hello"), (Ids{2, 8, 8, 3}));
  EXPECT_EQ(tokenizer.encode("hello hello hello", 5), (Ids{2, 8, 8, 8, 3}));
  EXPECT_EQ(tokenizer.encode("hello", 2), (Ids{2, 3}));
  EXPECT_EQ(tokenizer.encode("unaffable"), (Ids{2, 1, 3}));
  EXPECT_THROW(tokenizer.encode("hello", 1), Error);
  EXPECT_THROW(tokenizer.token(16), Error);
}

std::string lines_of(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token + "\n";
  return text;
}

std::string json_of(const std::vector<std::string>& tokens, const std::string& normalizer = "{\"type\":\"BertNormalizer\"}",
                    const std::string& type = "WordPiece") {
  std::string vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocabulary += (i ? ",\"" : "\"") + tokens[i] + "\":" + std::to_string(i);
  }
  return R"({"truncation":{"max_length":5},"added_tokens":[{"id":4,"content":"[MASK]"}],"normalizer":)" + normalizer +
         R"(,"model":{"type":")" + type + R"(","vocab":{)" + vocabulary + "}}}";
}

// Each text would take minutes if the tokenizer compared each position with all tokens, or with all ends of pieces.
TEST(WordPieceTokenizer, LongWordsTakeTimeInProportion) {
  io::WordPieceOptions options;
  options.longest_word = 1 << 20;
  const std::vector<std::string> tokens = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "a", "##a", std::string(4096, 'a')};
  const WordPieceTokenizer tokenizer(tokens, options);
  const Ids ids = tokenizer.encode(std::string(100000, 'a'), 1 << 20);
  EXPECT_EQ(ids.size(), 1 + 1 + (100000 - 4096) + 1u);
  std::vector<std::string> longer = tokens;
  longer.push_back(std::string(4097, 'b'));
  EXPECT_THROW(WordPieceTokenizer(longer, options), Error);
}

TEST(BytePairTokenizer, ManySpecialTokensTakeTimeInProportion) {
  io::BytePairVocabulary vocabulary = vocabulary_of({});
  for (int i = 0; i < 50000; ++i) {
    vocabulary.special.push_back(static_cast<int64_t>(vocabulary.tokens.size()));
    vocabulary.tokens.push_back("<" + std::to_string(i) + ">");
  }
  const BytePairTokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode(std::string(100000, '<') + "<49999>", true).back(), 256 + 50000);
}

TEST(WordPieceTokenizer, BothKindsOfFilesRead) {
  const Scratch scratch;
  const WordPieceTokenizer lines(scratch.write("vocab.txt", lines_of(kPieces)));
  EXPECT_EQ(lines.encode("hello [MASK] hello hello"), (Ids{2, 8, 4, 8, 8, 3}));
  EXPECT_EQ(WordPieceTokenizer(scratch.write("crlf", "[UNK]\r\n[CLS]\r\n[SEP]\r\nhi")).encode("hi"), (Ids{1, 3, 2}));
  const WordPieceTokenizer json(scratch.write("tokenizer.json", json_of(kPieces)));
  EXPECT_EQ(json.encode("hello [MASK] hello hello"), (Ids{2, 8, 4, 8, 3}));
  EXPECT_EQ(json.options().max_length, 5);
  const std::string cased = R"({"type":"BertNormalizer","lowercase":false,"strip_accents":null})";
  EXPECT_EQ(WordPieceTokenizer(scratch.write("cased", json_of(kPieces, cased))).encode("Hello hello"), (Ids{2, 1, 8, 3}));
}

TEST(WordPieceTokenizer, MalformedFilesAreRefusedWithTheReason) {
  const Scratch scratch;
  const std::string two_ids =
      R"({"normalizer":{"type":"BertNormalizer"},"model":{"vocab":{"[CLS]":0,"[UNK]":0,"[SEP]":1}}})";
  const std::string far = R"({"normalizer":{"type":"BertNormalizer"},"model":{"vocab":{"[CLS]":1000000}}})";
  const std::pair<std::string, const char*> rows[] = {
      {"", "has no \"[UNK]\""},
      {"[UNK]\n[CLS]\n", "has no \"[SEP]\""},
      {lines_of(kPieces) + "hello\n", "the token \"hello\" occurs twice"},
      {"{", "is not JSON in UTF-8"},
      {"{}", "has no model"},
      {json_of(kPieces, "null"), "has no normalizer"},
      {json_of(kPieces, "{\"type\":\"NFC\"}"), "normalises texts by \"NFC\", expected BertNormalizer"},
      {json_of(kPieces, "{\"type\":\"BertNormalizer\",\"lowercase\":1}"), "a lowercase that is not true or false"},
      {json_of(kPieces, "{\"type\":\"BertNormalizer\"}", "BPE"), "a model of type \"BPE\", expected WordPiece"},
      {two_ids, "has the id 0 twice"},
      {far, "has the id 1000000, but only 1 tokens"},
      {"{\"a\":" + std::string(100000, '['), "nested too deeply"},
      {"{\"a\":1,\"a\":2}", "the key \"a\" twice"},
  };
  for (const auto& [bytes, words] : rows) {
    const std::string path = scratch.write("file", bytes);
    const std::string message = io_error_of([&] { WordPieceTokenizer{path}; });
    expect_mentions(message, words);
    expect_mentions(message, "[" + path + "]");
  }
  expect_mentions(io_error_of([&] { WordPieceTokenizer{scratch.path("absent")}; }), "expected the vocab.txt");
}

TEST(WordPieceTokenizer, DamagedFilesAreRefusedOrRead) {
  const Scratch scratch;
  const auto read = [](const std::string& path) {
    EXPECT_GE(WordPieceTokenizer(path).encode("hello unaffable!").size(), 2u);
  };
  EXPECT_GT(count_refused(scratch, json_of(kPieces), 400, read), 100u);
  EXPECT_GT(count_refused(scratch, lines_of(kPieces), 400, read), 10u);
}

TEST(Characters, PositionsFollowTheCodePoints) {
  const io::Characters letters("hello \xe2\x82\xac");
  EXPECT_EQ(letters.size(), 6);
  EXPECT_EQ(letters.encode("ho\xe2\x82\xac el"), (Ids{2, 4, 5, 0, 1, 3}));
  EXPECT_EQ(letters.decode(letters.encode("hole\xe2\x82\xac")), "hole\xe2\x82\xac");
  EXPECT_TRUE(letters.encode("").empty());
  EXPECT_EQ(io::Characters("").size(), 0);
  EXPECT_THROW(letters.encode("x"), Error);
  EXPECT_THROW(letters.decode(Ids{6}), Error);
  EXPECT_THROW(letters.decode(Ids{-1}), Error);
}

}  // namespace
}  // namespace plugrad::test
