#include <core/runtime/memory/aligned.hpp>

#include <plugrad/runtime/numbers.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace plugrad {
namespace {
// The number of characters of a text in UTF-8: its width on a terminal, if each character takes a single column.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string in_units(double number, std::span<const char* const> units) {
  size_t unit = 0;
  for (; std::abs(number) >= 999.5 && unit + 1 < units.size(); ++unit) number /= 1000;
  const double size = std::abs(number);
  const bool whole = unit == 0 && number == std::floor(number);
  const int digits = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fixed_text(number, digits) + " " + units[unit];
}
}  // namespace

std::string aligned(const std::vector<TextRow>& rows, size_t left) {
  std::vector<size_t> widths(rows.front().size());
  for (const TextRow& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  const auto add = [&](const TextRow& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (i < left ? row[i] + space : space + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  TextRow dashes;
  for (const size_t width : widths) dashes.emplace_back(width, '-');
  add(rows.front());
  add(dashes);
  for (const TextRow& row : std::span(rows).subspan(1)) add(row);
  return text;
}

std::string time_text(double nanoseconds) {
  static constexpr std::array<const char*, 4> kUnits{"ns", "us", "ms", "s"};
  return in_units(nanoseconds, kUnits);
}

std::string bytes_text(double bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  return in_units(bytes, kUnits);
}

std::string percent_text(double part, double whole) { return fixed_text(whole > 0 ? 100 * part / whole : 0, 1) + "%"; }

}  // namespace plugrad
