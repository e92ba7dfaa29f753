#include <plugrad/tensor/shape.hpp>

#include <core/runtime/dispatch/operand.hpp>
#include <plugrad/runtime/error.hpp>

#include <ostream>

namespace plugrad {

Shape::Shape(std::span<const int64_t> extents) {
  for (int64_t extent : extents) push_back(extent);
}

void Shape::push_back(int64_t extent) {
  if (rank_ == PLUGRAD_MAX_RANK) throw Error(Code::invalid, "[shape] rank exceeds the maximum of 8");
  extents_[rank_++] = extent;
}

int64_t Shape::count() const {
  int64_t product = 1;
  bool empty = false, overflow = false;
  for (int64_t extent : *this) {
    if (extent < 0) throw Error(Code::invalid, "[shape] an extent is negative: " + text());
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(product, extent, &product);
  }
  if (empty) return 0;
  if (overflow) throw Error(Code::invalid, "[shape] more than 2^63 - 1 elements: " + text());
  return product;
}

std::string Shape::text() const { return extents_text(std::span(extents_).first(rank_)); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.text(); }

}  // namespace plugrad
