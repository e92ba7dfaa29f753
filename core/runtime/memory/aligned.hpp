// Text in columns, and numbers with units.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace plugrad {

using TextRow = std::vector<std::string>;

// Lines of equal columns, two spaces apart: the first `left` columns are left-aligned, the rest right-aligned. The first row
// is the header; a line of dashes follows it. All rows have the header's length.
std::string aligned(const std::vector<TextRow>& rows, size_t left);

// "12.3 ms": three significant digits in the largest unit below the number.
std::string time_text(double nanoseconds);
// "4.56 MB", in powers of 1000.
std::string bytes_text(double bytes);
// "12.3%"
std::string percent_text(double part, double whole);

}  // namespace plugrad
