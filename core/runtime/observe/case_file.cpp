#include <core/runtime/observe/case_file.hpp>

#include <core/runtime/plugins/platform.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/sdk/dtypes.hpp>

#include <atomic>
#include <cstring>
#include <fstream>

namespace plugrad {
namespace {

void append_hex(std::string& text, const unsigned char* bytes, size_t count) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (size_t i = 0; i < count; ++i) text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
}

void append_values(std::string& text, const plugrad_view& view) {
  const size_t size = element_size(view.dtype);
  int64_t index[PLUGRAD_MAX_RANK] = {};
  for (int64_t n = 0; n < view.count; ++n) {
    int64_t element = 0;
    for (int axis = 0; axis < view.rank; ++axis) element += index[axis] * view.strides[axis];
    text += ' ';
    append_hex(text,
               reinterpret_cast<const unsigned char*>(view.buffer) + view.offset + element * static_cast<int64_t>(size),
               size);
    for (int axis = view.rank; axis-- > 0; index[axis] = 0)
      if (++index[axis] < view.shape[axis]) break;
  }
}

}  // namespace

CaseFile::CaseFile(const char* op, uint32_t flags, const void* attributes) : op_(op) {
  text_ = "plugrad-case 0\nop " + op_ + "\nflags " + std::to_string(flags) + "\nattributes ";
  uint32_t size = 0;
  if (attributes) std::memcpy(&size, attributes, sizeof size);
  append_hex(text_, static_cast<const unsigned char*>(attributes), size);
  text_ += "\n";
}

void CaseFile::add(const plugrad_view& view, const plugrad_view* values) {
  const std::string dtype = dtype_info(view.dtype)->label;
  if (view.layout & PLUGRAD_IMMEDIATE) {
    text_ += "immediate " + dtype + " ";
    append_hex(text_, reinterpret_cast<const unsigned char*>(&view.offset), sizeof view.offset);
    text_ += "\n";
    return;
  }
  text_ += "operand " + dtype + (view.layout & PLUGRAD_UNALIGNED ? " unaligned " : " aligned ") + std::to_string(view.rank);
  for (int axis = 0; axis < view.rank; ++axis) text_ += " " + std::to_string(view.shape[axis]);
  for (int axis = 0; axis < view.rank; ++axis) text_ += " " + std::to_string(view.shape[axis] > 1 ? view.strides[axis] : 0);
  text_ += "\nvalues";
  if (values) append_values(text_, *values);
  text_ += "\n";
}

void CaseFile::set_in_place(int input) { text_ += "in_place " + std::to_string(input) + "\n"; }

std::string CaseFile::write() const {
  static std::atomic<int> count{0};
  const std::string name =
      "plugrad-" + op_ + "-" + std::to_string(platform::process()) + "-" + std::to_string(++count) + ".case";
  std::ofstream file(name, std::ios::binary);
  if (file << text_ && file.flush()) return name;
  log(LogLevel::warning, "the case of " + op_ + " cannot be written to " + name + " in the current directory");
  return "";
}

std::string text_of_operand(const plugrad_view& view) {
  std::string text = std::string(dtype_info(view.dtype)->label) + " ";
  if (view.layout & PLUGRAD_IMMEDIATE) return text + "number";
  text += "(";
  for (int axis = 0; axis < view.rank; ++axis) text += (axis ? ", " : "") + std::to_string(view.shape[axis]);
  text += ")";
  if (!(view.layout & PLUGRAD_STRIDED)) return text;
  text += " with strides (";
  for (int axis = 0; axis < view.rank; ++axis) text += (axis ? ", " : "") + std::to_string(view.strides[axis]);
  return text + ")";
}

}  // namespace plugrad
