// Enumerations of the core, whose values are strings in Python.
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
template <> struct Choices<ConvolutionPadding> {
  static constexpr const char* kRole = "padding";
  static constexpr std::array kNames = {std::pair("valid", ConvolutionPadding::valid),
                                        std::pair("same", ConvolutionPadding::same)};
};
template <> struct Choices<Resampling> {
  static constexpr const char* kRole = "mode";
  static constexpr std::array kNames = {std::pair("nearest", Resampling::nearest),
                                        std::pair("nearest-exact", Resampling::nearest_exact),
                                        std::pair("linear", Resampling::linear),
                                        std::pair("bilinear", Resampling::bilinear),
                                        std::pair("trilinear", Resampling::trilinear),
                                        std::pair("bicubic", Resampling::bicubic),
                                        std::pair("area", Resampling::area)};
};
template <> struct Choices<GridPadding> {
  static constexpr const char* kRole = "padding_mode";
  static constexpr std::array kNames = {std::pair("zeros", GridPadding::zeros), std::pair("border", GridPadding::border),
                                        std::pair("reflection", GridPadding::reflection)};
};
template <> struct Choices<Interpolation> {
  static constexpr const char* kRole = "interpolation";
  static constexpr std::array kNames = {std::pair("linear", Interpolation::linear), std::pair("lower", Interpolation::lower),
                                        std::pair("higher", Interpolation::higher),
                                        std::pair("midpoint", Interpolation::midpoint),
                                        std::pair("nearest", Interpolation::nearest)};
};
template <> struct Choices<Side> {
  static constexpr const char* kRole = "side";
  static constexpr std::array kNames = {std::pair("left", Side::left), std::pair("right", Side::right)};
};
template <> struct Choices<Approximation> {
  static constexpr const char* kRole = "approximate";
  static constexpr std::array kNames = {std::pair("none", Approximation::none), std::pair("tanh", Approximation::tanh)};
};
template <> struct Choices<BagMode> {
  static constexpr const char* kRole = "mode";
  static constexpr std::array kNames = {std::pair("sum", BagMode::sum), std::pair("mean", BagMode::mean),
                                        std::pair("max", BagMode::max)};
};
template <> struct Choices<RoundingMode> {
  static constexpr const char* kRole = "rounding_mode";
  static constexpr std::array kNames = {std::pair("trunc", RoundingMode::trunc), std::pair("floor", RoundingMode::floor)};
};

template <> struct Choices<ScatterReduction> {
  static constexpr const char* kRole = "reduce";
  static constexpr std::array kNames = {std::pair("sum", ScatterReduction::sum), std::pair("prod", ScatterReduction::prod),
                                        std::pair("mean", ScatterReduction::mean), std::pair("amax", ScatterReduction::amax),
                                        std::pair("amin", ScatterReduction::amin)};
};

template <class Enum>
concept Named = requires { Choices<Enum>::kNames; };

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
