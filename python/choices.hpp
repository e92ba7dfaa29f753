// Enumerations of the core, which Python names by strings.
#pragma once
#include <plugrad/plugrad.hpp>

#include <array>
#include <string>
#include <utility>

namespace plugrad::python {

// The parameter's name in errors, and the names of the values. Specialised for each enumeration.
template <class Enum> struct Choices {};

template <> struct Choices<GridIndexing> {
  static constexpr const char* kRole = "indexing";
  static constexpr std::array kNames = {std::pair("ij", GridIndexing::ij), std::pair("xy", GridIndexing::xy)};
};
template <> struct Choices<PadMode> {
  static constexpr const char* kRole = "mode";
  static constexpr std::array kNames = {std::pair("constant", PadMode::constant), std::pair("reflect", PadMode::reflect),
                                        std::pair("replicate", PadMode::replicate),
                                        std::pair("circular", PadMode::circular)};
};

template <class Enum>
concept Named = requires {
  Choices<Enum>::kNames;
};

// Returns the value of this name. Throws Error (invalid), which lists the names, if there is none.
template <Named Enum> Enum chosen(const std::string& name) {
  std::string known;
  for (const auto& [text, value] : Choices<Enum>::kNames) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw Error(Code::invalid,
              std::string("[") + Choices<Enum>::kRole + "] '" + name + "' is unknown: one of " + known + " expected");
}

}  // namespace plugrad::python
