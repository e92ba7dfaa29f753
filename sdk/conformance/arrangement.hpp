// Layouts of operands in memory: the columns of the matrix.
#pragma once
#include <sdk/conformance/problem.hpp>

#include <array>

namespace plugrad::conformance {

enum class Form : uint8_t {
  dense,
  stepped,          // every second element of the last axis
  padded,           // a gap after each row
  transposed,       // column-major
  swapped,          // the last two axes exchanged
  reversed,         // negative strides in all axes
  reversed_last,    // in the last axis
  broadcast_first,  // stride 0 in the first axis longer than 1
  broadcast_last,
  broadcast_all,
  immediate,
  channels_last,  // the second axis innermost, for ops on images
};

struct Placement {
  Form form = Form::dense;
  bool unaligned = false;
};

struct Arrangement {
  std::vector<Placement> operands;  // outputs, then inputs
  int in_place = -1;                // the input with the same memory as the output, or -1
  bool for_large = false;           // also used for large problems
};

enum class Column : uint8_t { dense, strided, broadcast, negative, immediate, offset, mixed };
inline constexpr int kColumns = 7;
inline constexpr std::array<const char*, kColumns> kColumnNames = {"dense",     "strided", "broadcast", "negative",
                                                                   "immediate", "offset",  "mixed"};

// The layout bits of a column beyond the bits that the op always has. For `mixed`, all bits that may occur.
uint16_t column_bits(Column column);

std::vector<Arrangement> arrangements(Column column, const OpRow& row, const Question& question, Random& random);

// Strides in elements. A negative stride counts from the last element of its axis.
Shape strides_of(const Shape& shape, Form form);
// Returns the array as a view of this form shows it: elements along a zero stride are equal.
Array seen_through(const Array& array, Form form);
bool is_broadcast(Form form);
// Whether the op works on images (n, c, ..), which may have their channels last.
bool is_on_images(const OpInfo& op);
const char* form_name(Form form);

}  // namespace plugrad::conformance
