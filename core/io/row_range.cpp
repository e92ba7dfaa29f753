#include <core/io/row_range.hpp>

#include <core/io/quote.hpp>
#include <plugrad/runtime/error.hpp>

namespace plugrad::io {

Shape shape_of_rows(const std::string& path, const std::string& name, const Shape& shape, int64_t first, int64_t last) {
  const std::string who = "[" + path + "] tensor " + quote(name);
  if (shape.empty()) throw Error(Code::invalid, who + " has rank 0, and so no rows: read it whole");
  if (first < 0 || last < first || last > shape[0]) {
    throw Error(Code::index_error, who + " has " + std::to_string(shape[0]) + " rows, which do not contain " +
                                       std::to_string(first) + " .. " + std::to_string(last));
  }
  Shape part = shape;
  part[0] = last - first;
  return part;
}

}  // namespace plugrad::io
