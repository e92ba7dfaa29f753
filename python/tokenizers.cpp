// Bindings of the tokenizers, for plugrad/text.py.
#include <python/binding.hpp>

#include <plugrad/io/byte_pairs.hpp>
#include <plugrad/io/word_pieces.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

namespace plugrad::python {
namespace {

// Encoding and decoding do not release the GIL, because the work on a text is short.
void bind_byte_pairs(nb::module_& m) {
  using io::BytePairTokenizer;
  nb::class_<BytePairTokenizer>(m, "_BytePairTokenizer")
      .def(nb::init<const io::GgufFile&>())
      .def(
          "__init__",
          [](BytePairTokenizer* self, std::vector<std::string> tokens, std::vector<std::string> merges,
             std::vector<int64_t> special, bool single_digits) {
            new (self) BytePairTokenizer({std::move(tokens), std::move(merges), std::move(special), single_digits});
          },
          nb::arg("tokens"), nb::arg("merges"), nb::arg("special"), nb::arg("single_digits"))
      .def("size", &BytePairTokenizer::size)
      .def("encode", &BytePairTokenizer::encode, nb::arg("text"), nb::arg("special"))
      .def("bytes",
           [](const BytePairTokenizer& self, int64_t id) {
             const std::string& bytes = self.bytes(id);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def(
          "decode",
          [](const BytePairTokenizer& self, const std::vector<int64_t>& ids, bool skip_special) {
            return self.decode(ids, skip_special);
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def("id_of", &BytePairTokenizer::id_of)
      .def("is_special", &BytePairTokenizer::is_special);
}

void bind_word_pieces(nb::module_& m) {
  using io::WordPieceTokenizer;
  nb::class_<WordPieceTokenizer>(m, "_WordPieceTokenizer")
      .def("__init__",
           [](WordPieceTokenizer* self, const nb::object& path) {
             new (self) WordPieceTokenizer(unlocked([file = path_of(path)] { return WordPieceTokenizer(file); }));
           })
      .def("size", &WordPieceTokenizer::size)
      .def("encode", &WordPieceTokenizer::encode, nb::arg("text"), nb::arg("max_length").none())
      .def("token", &WordPieceTokenizer::token)
      .def(
          "decode",
          [](const WordPieceTokenizer& self, const std::vector<int64_t>& ids, bool skip_special) {
            return self.decode(ids, skip_special);
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def("id_of", &WordPieceTokenizer::id_of)
      .def("max_length", [](const WordPieceTokenizer& self) { return self.options().max_length; });
}
}  // namespace

void bind_tokenizers(nb::module_& m) {
  bind_byte_pairs(m);
  bind_word_pieces(m);
  nb::class_<io::TextStream>(m, "_TextStream")
      .def(nb::init<>())
      .def("push", [](io::TextStream& self, const nb::bytes& bytes) { return self.push({bytes.c_str(), bytes.size()}); })
      .def("finish", &io::TextStream::finish);
}

}  // namespace plugrad::python
