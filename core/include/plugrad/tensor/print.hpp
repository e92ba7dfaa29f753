// Options for printing tensors.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>

namespace plugrad {

// By the names and meanings of NumPy's set_printoptions.
struct PrintOptions {
  int precision = 8;                              // digits after the point, at most
  int64_t threshold = 1000;                       // with more elements than this, long axes show their ends alone
  int64_t edge_items = 3;                         // elements at each end
  int64_t line_width = 75;                        // characters of a line
  std::optional<bool> scientific = std::nullopt;  // 1.5e+03 or 1500., always; unset: as the numbers need it
};

// The options of the process. set_print_options throws Error (invalid) for numbers out of range.
PLUGRAD_API PrintOptions print_options();
PLUGRAD_API void set_print_options(const PrintOptions& options);

}  // namespace plugrad
